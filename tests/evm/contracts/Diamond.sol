// SPDX-License-Identifier: MIT
pragma solidity ^0.8.26;

enum FacetCutAction {
    Add,
    Replace,
    Remove
}

struct FacetCut {
    address facetAddress;
    FacetCutAction action;
    bytes4[] functionSelectors;
}

/// What a diamond keeps (EIP-2535), at a place that no facet comes upon by chance.
library Facets {
    event DiamondCut(FacetCut[] _diamondCut, address _init, bytes _calldata);
    event OwnershipTransferred(address indexed previousOwner, address indexed newOwner);

    struct Kept {
        address owner;
        bytes4[] selectors;
        mapping(bytes4 => address) facetOf;
        mapping(bytes4 => bool) interfaces;
    }

    bytes32 private constant PLACE = keccak256("tests.evm.diamond");

    function kept() internal pure returns (Kept storage found) {
        bytes32 place = PLACE;
        assembly {
            found.slot := place
        }
    }

    function requireOwner() internal view {
        require(msg.sender == kept().owner, "Diamond: only the owner may do this");
    }

    function setOwner(address owner) internal {
        emit OwnershipTransferred(kept().owner, owner);
        kept().owner = owner;
    }

    function cut(FacetCut[] memory cuts, address init, bytes memory data) internal {
        for (uint256 i = 0; i < cuts.length; ++i) {
            FacetCut memory one = cuts[i];
            require(one.functionSelectors.length > 0, "Diamond: a cut without functions");
            if (one.action == FacetCutAction.Remove) {
                require(one.facetAddress == address(0), "Diamond: a removal names no facet");
            } else {
                require(one.facetAddress.code.length > 0, "Diamond: the facet has no code");
            }
            for (uint256 which = 0; which < one.functionSelectors.length; ++which) {
                _cut(one.facetAddress, one.action, one.functionSelectors[which]);
            }
        }
        emit DiamondCut(cuts, init, data);
        if (init == address(0)) return;
        require(init.code.length > 0, "Diamond: the initialiser has no code");
        (bool done, bytes memory answer) = init.delegatecall(data);
        if (done) return;
        require(answer.length > 0, "Diamond: the initialiser failed");
        assembly {
            revert(add(answer, 32), mload(answer))
        }
    }

    function _cut(address facet, FacetCutAction action, bytes4 selector) private {
        Kept storage all = kept();
        address before = all.facetOf[selector];
        if (action == FacetCutAction.Add) {
            require(before == address(0), "Diamond: the function is there already");
            all.selectors.push(selector);
        } else {
            require(before != address(0), "Diamond: there is no such function");
        }
        if (action == FacetCutAction.Replace) {
            require(before != facet, "Diamond: the function is this facet's already");
        }
        all.facetOf[selector] = facet;
        if (action == FacetCutAction.Remove) {
            uint256 i = 0;
            while (all.selectors[i] != selector) ++i;
            all.selectors[i] = all.selectors[all.selectors.length - 1];
            all.selectors.pop();
        }
    }
}

/// One address whose functions are those of its facets.
contract Diamond {
    constructor(address owner, FacetCut[] memory cuts) payable {
        Facets.setOwner(owner);
        Facets.cut(cuts, address(0), "");
        Facets.Kept storage all = Facets.kept();
        all.interfaces[0x01ffc9a7] = true; // ERC-165
        all.interfaces[0x1f931c1c] = true; // diamondCut
        all.interfaces[0x48e2b093] = true; // the loupe
        all.interfaces[0x7f5828d0] = true; // ERC-173
    }

    fallback() external payable {
        address facet = Facets.kept().facetOf[msg.sig];
        require(facet != address(0), "Diamond: no facet has this function");
        assembly {
            calldatacopy(0, 0, calldatasize())
            let done := delegatecall(gas(), facet, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            switch done
            case 0 {
                revert(0, returndatasize())
            }
            default {
                return(0, returndatasize())
            }
        }
    }

    receive() external payable {}
}

contract CutFacet {
    event DiamondCut(FacetCut[] _diamondCut, address _init, bytes _calldata);

    function diamondCut(FacetCut[] calldata _diamondCut, address _init, bytes calldata _calldata) external {
        Facets.requireOwner();
        Facets.cut(_diamondCut, _init, _calldata);
    }
}

contract LoupeFacet {
    struct Facet {
        address facetAddress;
        bytes4[] functionSelectors;
    }

    function facets() external view returns (Facet[] memory found) {
        address[] memory addresses = facetAddresses();
        found = new Facet[](addresses.length);
        for (uint256 i = 0; i < addresses.length; ++i) {
            found[i] = Facet(addresses[i], facetFunctionSelectors(addresses[i]));
        }
    }

    function facetFunctionSelectors(address _facet) public view returns (bytes4[] memory found) {
        Facets.Kept storage all = Facets.kept();
        found = new bytes4[](all.selectors.length);
        uint256 count = 0;
        for (uint256 i = 0; i < all.selectors.length; ++i) {
            if (all.facetOf[all.selectors[i]] == _facet) found[count++] = all.selectors[i];
        }
        assembly {
            mstore(found, count)
        }
    }

    function facetAddresses() public view returns (address[] memory found) {
        Facets.Kept storage all = Facets.kept();
        found = new address[](all.selectors.length);
        uint256 count = 0;
        for (uint256 i = 0; i < all.selectors.length; ++i) {
            address facet = all.facetOf[all.selectors[i]];
            uint256 seen = 0;
            while (seen < count && found[seen] != facet) ++seen;
            if (seen == count) found[count++] = facet;
        }
        assembly {
            mstore(found, count)
        }
    }

    function facetAddress(bytes4 _functionSelector) external view returns (address) {
        return Facets.kept().facetOf[_functionSelector];
    }

    function supportsInterface(bytes4 id) external view returns (bool) {
        return Facets.kept().interfaces[id];
    }
}

contract OwnershipFacet {
    event OwnershipTransferred(address indexed previousOwner, address indexed newOwner);

    function owner() external view returns (address) {
        return Facets.kept().owner;
    }

    function transferOwnership(address _newOwner) external {
        Facets.requireOwner();
        Facets.setOwner(_newOwner);
    }
}

/// A facet whose events come from the diamond's address.
contract BadgeFacet {
    event Awarded(address indexed to, uint256 points, string reason);

    struct Badges {
        mapping(address => uint256) points;
    }

    function _kept() private pure returns (Badges storage found) {
        bytes32 place = keccak256("tests.evm.badges");
        assembly {
            found.slot := place
        }
    }

    function award(address to, uint256 points, string calldata reason) external {
        _kept().points[to] += points;
        emit Awarded(to, points, reason);
    }

    function pointsOf(address who) external view returns (uint256) {
        return _kept().points[who];
    }
}

/// A second facet with an event; one of its functions is BadgeFacet's as well.
contract CounterFacet {
    event Counted(uint256 value);

    function _place() private pure returns (bytes32) {
        return keccak256("tests.evm.counter");
    }

    function count() external {
        bytes32 place = _place();
        uint256 value;
        assembly {
            value := add(sload(place), 1)
            sstore(place, value)
        }
        emit Counted(value);
    }

    function counted() external view returns (uint256 value) {
        bytes32 place = _place();
        assembly {
            value := sload(place)
        }
    }
}

contract ClashingFacet {
    event Clashed(address who);

    function pointsOf(address who) external returns (uint256) {
        emit Clashed(who);
        return 0;
    }

    function clash() external {
        emit Clashed(msg.sender);
    }
}
