"""The bodies of ``/networks``: requests and responses as JSON has them."""

from __future__ import annotations

from typing import Annotated, Any, Final, NotRequired, TypeAlias, TypedDict

from msgspec import UNSET, Meta, Struct, UnsetType

from backend.openapi import DateTime
from chain.core.names import LONGEST_PROVIDER_NAME
from chain.rpc.addresses import LONGEST

NETWORK_ID: Final[dict[str, Any]] = {
    "name": "networkId",
    "in": "path",
    "required": True,
    "description": "The chain id of a network.",
    "schema": {"type": "string", "pattern": "^[1-9][0-9]{0,14}$"},
}

_Count: TypeAlias = Annotated[int, Meta(ge=0)] | None
_Limit: TypeAlias = Annotated[int, Meta(ge=1, le=2**31 - 1)] | None
_Name: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LONGEST_PROVIDER_NAME,
        description=r"Without / \ % ? # and spaces at its ends; neither . nor ..",
    ),
]
_Url: TypeAlias = Annotated[
    str,
    Meta(max_length=LONGEST, description="By http or https. Stored encrypted, and in no response."),
]
_SocketUrl: TypeAlias = Annotated[
    Annotated[str, Meta(max_length=LONGEST)] | None,
    Meta(description="By ws or wss. Stored encrypted, and in no response."),
]
_Weight: TypeAlias = Annotated[int, Meta(ge=0, le=32_767)]
_BatchSize: TypeAlias = Annotated[_Limit, Meta(description="Calls in one request.")]
_LargestRange: TypeAlias = Annotated[_Limit, Meta(description="Blocks of one `eth_getLogs`.")]
_Lag: TypeAlias = Annotated[_Count, Meta(description="In blocks.")]


class Provider(TypedDict):
    """An endpoint of the service, and its latest health unless it is inactive. What isn't known
    is null."""

    name: _Name
    weight: _Weight
    active: bool
    requestsPerSecond: _Limit
    batchSize: _BatchSize
    largestRange: _LargestRange
    hasSocketUrl: bool
    head: NotRequired[_Count]
    lag: NotRequired[_Lag]
    latency: NotRequired[Annotated[float | None, Meta(description="In milliseconds.")]]
    failures: NotRequired[Annotated[int, Meta(description="In a row.")]]
    pausedUntil: NotRequired[DateTime | None]
    trouble: NotRequired[str | None]
    checkedAt: NotRequired[DateTime | None]


class ProviderForm(Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    name: _Name | UnsetType = UNSET
    url: _Url | UnsetType = UNSET
    socket_url: _SocketUrl | UnsetType = UNSET
    weight: _Weight | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    requests_per_second: _Limit | UnsetType = UNSET
    batch_size: _BatchSize | UnsetType = UNSET
    largest_range: _LargestRange | UnsetType = UNSET


class NewProvider(ProviderForm, kw_only=True):
    name: _Name
    url: _Url


class NetworkState(TypedDict):
    """What `chain_status --json` prints of a network. What isn't known is null."""

    networkId: int
    name: NotRequired[str | None]
    active: bool
    head: NotRequired[_Count]
    checkpoint: NotRequired[Annotated[_Count, Meta(description="The last block that was indexed.")]]
    lag: _Lag
    lagSeconds: Annotated[float | None, Meta(description="Since the last poll.")]
    safe: NotRequired[_Count]
    finalized: NotRequired[_Count]
    trouble: NotRequired[str | None]
    halted: Annotated[str | None, Meta(description="Why nothing is indexed.")]


class EndOfHalt(Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """Without a field, indexing continues from where it was."""

    unwind_to: (
        Annotated[int, Meta(ge=0, description="The last block that both chains have.")] | UnsetType
    ) = UNSET
    from_scratch: (
        Annotated[bool, Meta(description="Index the network as a new one.")] | UnsetType
    ) = UNSET


class _NetworkStates(TypedDict):
    results: list[NetworkState]
    chainPaused: bool


class _Providers(TypedDict):
    results: list[Provider]


# Written in place in the document, as their names say.
NetworkStates: TypeAlias = _NetworkStates
Providers: TypeAlias = _Providers
