// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

// Wallets that are contracts (EIP-1271), compiled to wallets.json:
// solc --bin --optimize wallets.sol

contract OwnedWallet {
    address immutable owner;

    constructor(address owner_) {
        owner = owner_;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        require(signature.length == 65, "signature of another length");
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        address signer = ecrecover(hash, uint8(signature[64]), r, s);
        return signer != address(0) && signer == owner ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }
}

contract Reverting {
    fallback() external {
        revert("no");
    }
}

contract Endless {
    fallback() external {
        while (true) {}
    }
}

// Repeats what it is asked, which begins with the answer for yes.
contract Repeating {
    fallback(bytes calldata asked) external returns (bytes memory) {
        return asked;
    }
}

// The answer for yes with something behind it in the same word.
contract Careless {
    fallback(bytes calldata) external returns (bytes memory) {
        return abi.encodePacked(bytes4(0x1626ba7e), bytes28(uint224(1)));
    }
}
