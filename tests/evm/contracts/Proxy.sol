// SPDX-License-Identifier: MIT
pragma solidity ^0.8.26;

/// A proxy whose code is elsewhere (EIP-1967).
contract Proxy {
    event Upgraded(address indexed implementation);

    bytes32 private constant IMPLEMENTATION = bytes32(uint256(keccak256("eip1967.proxy.implementation")) - 1);
    bytes32 private constant ADMIN = bytes32(uint256(keccak256("eip1967.proxy.admin")) - 1);

    constructor(address implementation) payable {
        bytes32 place = ADMIN;
        assembly {
            sstore(place, caller())
        }
        _set(implementation);
    }

    function upgradeTo(address implementation) external {
        bytes32 place = ADMIN;
        address admin;
        assembly {
            admin := sload(place)
        }
        require(msg.sender == admin, "Proxy: only the admin may do this");
        _set(implementation);
    }

    function _set(address implementation) private {
        require(implementation.code.length > 0, "Proxy: the implementation has no code");
        bytes32 place = IMPLEMENTATION;
        assembly {
            sstore(place, implementation)
        }
        emit Upgraded(implementation);
    }

    fallback() external payable {
        bytes32 place = IMPLEMENTATION;
        assembly {
            calldatacopy(0, 0, calldatasize())
            let done := delegatecall(gas(), sload(place), 0, calldatasize(), 0, 0)
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

contract BoxV1 {
    event Stored(uint256 value);

    uint256 public value;

    function store(uint256 newValue) external {
        value = newValue;
        emit Stored(newValue);
    }
}

/// The same function with another event.
contract BoxV2 {
    event StoredBy(address indexed who, uint256 value, string note);

    uint256 public value;

    function store(uint256 newValue) external {
        value = newValue;
        emit StoredBy(msg.sender, newValue, "second version");
    }
}
