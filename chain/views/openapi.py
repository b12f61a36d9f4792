"""The part of networks in the API document."""

from __future__ import annotations

from typing import Any

from backend.http.permissions import Requires
from backend.kernel.principal import Principal
from backend.openapi import Names, Offer, Operation, Part, answer, body, contribute, ref
from chain.core.names import LONGEST_PROVIDER_NAME
from chain.rpc.addresses import LONGEST

Json = dict[str, Any]

_TAG = "Networks"
_MASTER = Requires.MASTER_KEY
_TIME: Json = {"type": ["string", "null"], "format": "date-time"}
_COUNT: Json = {"type": ["integer", "null"], "minimum": 0}
_NETWORK_ID: Json = {
    "name": "networkId",
    "in": "path",
    "required": True,
    "description": "The chain id of a network.",
    "schema": {"type": "string", "pattern": "^[1-9][0-9]{0,14}$"},
}
_LIMIT: Json = {"type": ["integer", "null"], "minimum": 1, "maximum": 2**31 - 1}
_SETTINGS: Json = {
    "name": {
        "type": "string",
        "minLength": 1,
        "maxLength": LONGEST_PROVIDER_NAME,
        "description": r"Without / \ % ? # and spaces at its ends; neither . nor ..",
    },
    "weight": {"type": "integer", "minimum": 0, "maximum": 32_767},
    "active": {"type": "boolean"},
    "requestsPerSecond": _LIMIT,
    "batchSize": {**_LIMIT, "description": "Calls in one request."},
    "largestRange": {**_LIMIT, "description": "Blocks of one `eth_getLogs`."},
}
_FIELDS: Json = {
    **_SETTINGS,
    "url": {
        "type": "string",
        "maxLength": LONGEST,
        "description": "By http or https. Stored encrypted, and in no answer.",
    },
    "socketUrl": {
        "type": ["string", "null"],
        "maxLength": LONGEST,
        "description": "By ws or wss. Stored encrypted, and in no answer.",
    },
}
_SCHEMAS: dict[str, Json] = {
    "Provider": {
        "type": "object",
        "description": "An endpoint of the service, and how it has been lately, unless it is"
        " inactive. What isn't known is null.",
        "properties": {
            **_SETTINGS,
            "hasSocketUrl": {"type": "boolean"},
            "head": _COUNT,
            "lag": {**_COUNT, "description": "In blocks."},
            "latency": {"type": ["number", "null"], "description": "In milliseconds."},
            "failures": {"type": "integer", "description": "In a row."},
            "pausedUntil": _TIME,
            "trouble": {"type": ["string", "null"]},
            "checkedAt": _TIME,
        },
        "required": [*_SETTINGS, "hasSocketUrl"],
    },
    "ProviderForm": {
        "type": "object",
        "properties": _FIELDS,
        "additionalProperties": False,
    },
    "NewProvider": {
        "type": "object",
        "properties": _FIELDS,
        "required": ["name", "url"],
        "additionalProperties": False,
    },
    "NetworkState": {
        "type": "object",
        "description": "What `chain_status --json` prints of a network. What isn't known is null.",
        "properties": {
            "networkId": {"type": "integer"},
            "name": {"type": ["string", "null"]},
            "active": {"type": "boolean"},
            "head": _COUNT,
            "checkpoint": {**_COUNT, "description": "The last block that was indexed."},
            "lag": {**_COUNT, "description": "In blocks."},
            "lagSeconds": {"type": ["number", "null"], "description": "Since the last poll."},
            "safe": _COUNT,
            "finalized": _COUNT,
            "trouble": {"type": ["string", "null"]},
            "halted": {"type": ["string", "null"], "description": "Why nothing is indexed."},
        },
        "required": ["networkId", "active", "lag", "lagSeconds", "halted"],
    },
    "EndOfHalt": {
        "type": "object",
        "description": "Without a field reading goes on from where it was.",
        "properties": {
            "unwindTo": {
                "type": "integer",
                "minimum": 0,
                "description": "The last block that both chains have.",
            },
            "fromScratch": {"type": "boolean", "description": "Read the network as a new one."},
        },
        "additionalProperties": False,
    },
}


def contribute_networks() -> None:
    """Describe the routes of ``chain.views.networks``."""
    contribute(_networks, schemas=_SCHEMAS)


def _networks(principal: Principal) -> Offer:
    return Offer(None, _part)


def _operation(
    id_: str,
    summary: str,
    answers: Json,
    *,
    form: Json | None = None,
    description: str = "",
    parameters: tuple[Json, ...] = (_NETWORK_ID,),
) -> Operation:
    return Operation(
        id_,
        _TAG,
        summary,
        answers,
        requires=_MASTER,
        description=description,
        parameters=parameters,
        body=form,
    )


def _part(names: Names) -> Part:
    nothing: Json = {"type": "object", "maxProperties": 0}
    results: Json = {
        "type": "object",
        "properties": {"results": {"type": "array", "items": ref("Provider")}},
        "required": ["results"],
    }
    states: Json = {
        "type": "object",
        "properties": {
            "results": {"type": "array", "items": ref("NetworkState")},
            "chainPaused": {"type": "boolean"},
        },
        "required": ["results", "chainPaused"],
    }
    provider = {"200": answer("The provider.", ref("Provider"))}
    return Part(
        {
            "/networks": {
                "get": _operation(
                    "listNetworks",
                    "The state of all networks",
                    {"200": answer("All of them.", states)},
                    parameters=(),
                ),
            },
            "/networks/{networkId}": {
                "get": _operation(
                    "showNetwork",
                    "The state of a network",
                    {"200": answer("The network.", ref("NetworkState"))},
                ),
            },
            "/networks/{networkId}/providers": {
                "get": _operation(
                    "listProviders",
                    "The providers of a network",
                    {"200": answer("All of them.", results)},
                ),
                "post": _operation(
                    "addProvider",
                    "Add a provider to a network",
                    {"201": answer("It is added.", ref("Provider"))},
                    form=body(ref("NewProvider")),
                    description="No request is sent to it.",
                ),
            },
            "/networks/{networkId}/providers/{name}": {
                "get": _operation("showProvider", "A provider", provider),
                "put": _operation(
                    "changeProvider",
                    "Change fields of a provider",
                    provider,
                    form=body(ref("ProviderForm")),
                    description="`null` removes `socketUrl` or a limit.",
                ),
                "delete": _operation(
                    "removeProvider",
                    "Remove a provider",
                    {"200": answer("It is removed.", nothing)},
                ),
            },
            "/networks/{networkId}/resume": {
                "post": _operation(
                    "resumeNetwork",
                    "Read a halted network again",
                    {"200": answer("It is read again.", nothing)},
                    form=body(ref("EndOfHalt"), required=False),
                )
            },
        }
    )
