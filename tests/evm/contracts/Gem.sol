// SPDX-License-Identifier: MIT
pragma solidity ^0.8.26;

/// A token of ERC-721 that anybody may mint, with the minted event of the specification (section 6).
contract Gem {
    enum AttributeType {
        Text,
        Number,
        Flag
    }

    struct Attribute {
        string key;
        AttributeType attributeType;
        string value;
    }

    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);
    event Approval(address indexed owner, address indexed approved, uint256 indexed tokenId);
    event ApprovalForAll(address indexed owner, address indexed operator, bool approved);
    event GemforceMinted(uint256 tokenId, address minter, Attribute[] metadata);

    error Refused(address caller, uint256 reason);

    string public constant name = "Gem";
    string public constant symbol = "GEM";

    uint256 public totalSupply;
    uint256 public spammed;
    mapping(uint256 => address) private _owners;
    mapping(uint256 => address) private _approved;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => bool)) public isApprovedForAll;

    function ownerOf(uint256 tokenId) public view returns (address owner) {
        owner = _owners[tokenId];
        require(owner != address(0), "no such gem");
    }

    function getApproved(uint256 tokenId) external view returns (address) {
        ownerOf(tokenId);
        return _approved[tokenId];
    }

    function tokenURI(uint256 tokenId) external view returns (string memory) {
        ownerOf(tokenId);
        return "https://example.com/gem";
    }

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0x01ffc9a7 || id == 0x80ac58cd || id == 0x5b5e139f;
    }

    function mint(address to) public returns (uint256 tokenId) {
        tokenId = ++totalSupply;
        _owners[tokenId] = to;
        balanceOf[to] += 1;
        emit Transfer(address(0), to, tokenId);
    }

    function mintBatch(uint256 count) external {
        for (uint256 made = 0; made < count; ++made) mint(msg.sender);
    }

    function mintWith(address to, Attribute[] calldata metadata) external returns (uint256 tokenId) {
        tokenId = mint(to);
        emit GemforceMinted(tokenId, msg.sender, metadata);
    }

    function approve(address to, uint256 tokenId) external {
        address owner = ownerOf(tokenId);
        require(msg.sender == owner || isApprovedForAll[owner][msg.sender], "not yours to approve");
        _approved[tokenId] = to;
        emit Approval(owner, to, tokenId);
    }

    function setApprovalForAll(address operator, bool approved) external {
        isApprovedForAll[msg.sender][operator] = approved;
        emit ApprovalForAll(msg.sender, operator, approved);
    }

    function transferFrom(address from, address to, uint256 tokenId) external {
        address owner = ownerOf(tokenId);
        require(owner == from && to != address(0), "wrong owner or receiver");
        require(
            msg.sender == owner || msg.sender == _approved[tokenId] || isApprovedForAll[owner][msg.sender],
            "not yours to send"
        );
        delete _approved[tokenId];
        balanceOf[from] -= 1;
        balanceOf[to] += 1;
        _owners[tokenId] = to;
        emit Transfer(from, to, tokenId);
    }

    /// Logs as of so many mints, without minting: a chain full of events in little time.
    function spam(uint256 count) external {
        uint256 first = spammed;
        for (uint256 made = 0; made < count; ++made) emit Transfer(address(0), msg.sender, first + made);
        spammed = first + count;
    }

    /// As ``spam``, with events of dynamic types: each has as many attributes.
    function spamMinted(uint256 count, uint256 attributes) external {
        Attribute[] memory metadata = new Attribute[](attributes);
        for (uint256 made = 0; made < attributes; ++made) {
            metadata[made] = Attribute("colour", AttributeType.Text, "as red as a gem can be");
        }
        uint256 first = spammed;
        for (uint256 made = 0; made < count; ++made) {
            emit GemforceMinted(first + made, msg.sender, metadata);
        }
        spammed = first + count;
    }

    function boom() external pure {
        revert("boom");
    }

    function refuse(uint256 reason) external view {
        revert Refused(msg.sender, reason);
    }

    function panic() external pure returns (uint256) {
        uint256 zero = 0;
        return 1 / zero;
    }
}
