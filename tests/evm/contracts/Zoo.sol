// SPDX-License-Identifier: MIT
pragma solidity ^0.8.26;

/// Events of every kind that decoding must bear.
contract Zoo {
    enum Kind {
        Bird,
        Fish,
        Mammal
    }

    struct Animal {
        string name;
        uint256 weight;
    }

    struct Cage {
        uint8 number;
        Animal[] animals;
        Animal star;
    }

    event Hidden(uint256 indexed number, string text) anonymous;
    event IndexedThings(string indexed text, bytes indexed raw, uint256[] indexed numbers);
    event IndexedAnimal(Animal indexed animal, uint256 value);
    event Animals(Animal[] animals, uint256[2] pair);
    event Caged(Cage cage);
    event Extremes(uint256 largest, int256 smallest, int256 minusOne);
    event Widths(uint48 unsigned48, uint56 unsigned56, int48 signed48, int56 signed56, uint8 small);
    event FixedBytes(bytes32 word, bytes4 four, bytes1 one, bytes raw, bool yes, address who);
    event Kinds(Kind kind, Kind[] kinds);
    event Same(uint256 number);
    event Same(string text);
    event Same(uint256 indexed number, string text);
    event Unnamed(uint256, string indexed, address);
    event Empty();
    event Words(string text);
    event Unlisted(uint256 value);

    function hidden() external {
        emit Hidden(7, "no topic of its own");
    }

    function indexedThings() external {
        uint256[] memory numbers = new uint256[](2);
        numbers[0] = 1;
        numbers[1] = 2;
        emit IndexedThings("text", hex"00ff", numbers);
        emit IndexedAnimal(Animal("owl", 3), 9);
    }

    function animals() external {
        Animal[] memory all = new Animal[](2);
        all[0] = Animal("owl", 3);
        all[1] = Animal(unicode"тюлень 🦭", type(uint256).max);
        emit Animals(all, [uint256(1), 2]);
        emit Caged(Cage(4, all, all[0]));
    }

    function extremes() external {
        emit Extremes(type(uint256).max, type(int256).min, -1);
        emit Widths(type(uint48).max, type(uint56).max, type(int48).min, type(int56).min, 255);
    }

    function fixedBytes() external {
        emit FixedBytes(
            0x0102030405060708091011121314151617181920212223242526272829303132,
            0xdeadbeef,
            0x7f,
            hex"cafe",
            true,
            msg.sender
        );
    }

    function kinds() external {
        Kind[] memory all = new Kind[](3);
        all[1] = Kind.Fish;
        all[2] = Kind.Mammal;
        emit Kinds(Kind.Mammal, all);
    }

    function overloads() external {
        emit Same(1);
        emit Same("one");
        emit Same(1, "both");
    }

    function unnamed() external {
        emit Unnamed(5, "five", msg.sender);
        emit Empty();
    }

    /// A text of any bytes, in UTF-8 or not.
    function words(bytes calldata text) external {
        emit Words(string(text));
    }

    /// An event to be left out of an ABI.
    function unlisted(uint256 value) external {
        emit Unlisted(value);
    }

    /// A log of any topics (at most four) and any data, whatever they mean.
    function raw(bytes32[] calldata topics, bytes calldata data) external {
        bytes memory body = data;
        bytes32[4] memory places;
        for (uint256 which = 0; which < topics.length; ++which) places[which] = topics[which];
        uint256 count = topics.length;
        assembly {
            let start := add(body, 32)
            let size := mload(body)
            switch count
            case 0 {
                log0(start, size)
            }
            case 1 {
                log1(start, size, mload(places))
            }
            case 2 {
                log2(start, size, mload(places), mload(add(places, 32)))
            }
            case 3 {
                log3(start, size, mload(places), mload(add(places, 32)), mload(add(places, 64)))
            }
            default {
                log4(start, size, mload(places), mload(add(places, 32)), mload(add(places, 64)), mload(add(places, 96)))
            }
        }
    }
}
