"""Whether an Ethereum account has signed a text (EIP-191 ``personal_sign``).

A key's signature is checked by itself. A contract's is asked of the contract (EIP-1271), at the
node that a deployment names for the chain.
"""

from __future__ import annotations

import re
from typing import Any

from eth_abi.abi import encode
from eth_keys.datatypes import Signature
from eth_keys.exceptions import BadSignature, ValidationError
from eth_utils import keccak

from objects.users.adapters.base import Unproven
from objects.users.adapters.http import Unreachable, fetch

_HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
_KEY_SIGNATURE = 65  # bytes: r, s, v
_IS_VALID_SIGNATURE = "1626ba7e"  # the function's selector, and its answer for yes
# The whole word is compared: the contracts that every chain has at 0x02 and 0x04 (a hash, a
# copy) can be made to answer with the right beginning.
_YES = f"0x{_IS_VALID_SIGNATURE}{'0' * 56}"
_GAS = 5_000_000
# How geth, anvil and others put it that the contract failed.
_FAILED = re.compile(
    r"revert|out ?of ?gas|invalid opcode|invalid jump|stack|evm error|vm execution error",
    re.IGNORECASE,
)


def message_hash(text: str) -> bytes:
    """What is signed for a text."""
    encoded = text.encode()
    return keccak(b"\x19Ethereum Signed Message:\n%d" % len(encoded) + encoded)


def signed_by_key(address: str, signed: bytes, signature: bytes) -> bool:
    """Whether the key of this (checksummed) address has signed the hash."""
    if len(signature) != _KEY_SIGNATURE:
        return False
    r, s, v = int.from_bytes(signature[:32]), int.from_bytes(signature[32:64]), signature[64]
    if v in (27, 28):
        v -= 27
    # Of each signature there is a twin with a large s; only one of them counts.
    if v not in (0, 1) or s > _HALF_ORDER:
        return False
    try:
        key = Signature(vrs=(v, r, s)).recover_public_key_from_msg_hash(signed)
    except (BadSignature, ValidationError):
        return False
    return bool(key.to_checksum_address() == address)


def signed_by_contract(rpc_url: str, address: str, signed: bytes, signature: bytes) -> bool:
    """Whether the contract says that the signature is its own. ``Unreachable``: no node answers."""
    data = encode(["bytes32", "bytes"], [signed, signature])
    call = {"to": address, "data": f"0x{_IS_VALID_SIGNATURE}{data.hex()}", "gas": hex(_GAS)}
    body = {"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [call, "latest"]}
    answer = fetch(rpc_url, body=body)
    if answer.status != 200:
        raise Unreachable(f"the node answered with {answer.status}")
    reply = answer.json()
    if "error" in reply:
        return _refused(reply["error"])
    result = reply.get("result")
    return isinstance(result, str) and result.lower() == _YES


def _refused(error: Any) -> bool:
    """``False`` if the contract itself failed; anything else is the node's trouble."""
    if isinstance(error, dict) and (
        error.get("code") == 3 or _FAILED.search(str(error.get("message")))
    ):
        return False
    raise Unreachable("the node could not call the contract")


def signature_bytes(text: str) -> bytes:
    """A signature as clients send it: 0x and hexadecimal digits."""
    if not re.fullmatch(r"0x(?:[0-9a-fA-F]{2})+", text):
        raise Unproven("the signature is not hexadecimal")
    return bytes.fromhex(text[2:])
