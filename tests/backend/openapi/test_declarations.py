"""Component schemas from declared types, and what a view inherits of its base's descriptions."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypeAlias, TypedDict

import pytest
from django.urls import path
from msgspec import UNSET, Meta, Struct, UnsetType

from backend.http.call import Call
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from backend.openapi import AnyOf, DateTime, describes, ref, schema_of
from backend.openapi.descriptions import routes_of


class _Place(TypedDict):
    port: str


class TideTime(TypedDict):
    """When it is high."""

    at: DateTime
    place: _Place
    level: NotRequired[Annotated[float | None, Meta(description="In metres.")]]


class TideForm(Struct, forbid_unknown_fields=True, rename="camel"):
    high_only: bool | UnsetType = UNSET


TidePort: TypeAlias = Annotated[str, Meta(title="TidePort", min_length=1)]


def test_a_typed_dict_is_a_component_and_a_private_one_is_written_in_place():
    components = {}
    assert schema_of(list[TideTime], components) == {"type": "array", "items": ref("TideTime")}
    assert components == {
        "TideTime": {
            "type": "object",
            "description": "When it is high.",
            "properties": {
                "at": {"type": "string", "format": "date-time"},
                "place": {
                    "type": "object",
                    "properties": {"port": {"type": "string"}},
                    "required": ["port"],
                },
                "level": {"type": ["number", "null"], "description": "In metres."},
            },
            "required": ["at", "place"],
        }
    }


def test_a_struct_can_refuse_other_fields():
    components = {}
    schema_of(AnyOf(TideForm, TideTime), components)
    assert components["TideForm"] == {
        "type": "object",
        "properties": {"highOnly": {"type": "boolean"}},
        "additionalProperties": False,
    }


def test_a_title_makes_a_component_of_any_type():
    components = {}
    assert schema_of(TidePort, components) == ref("TidePort")
    assert components == {"TidePort": {"type": "string", "minLength": 1}}


def test_two_components_with_the_same_name_are_refused():
    with pytest.raises(ValueError, match="two component schemas TideTime"):
        schema_of(TideTime, {"TideTime": {}})


class TidesView(ServiceView):
    tag = "Tides"
    requires = Requires.MASTER_KEY
    parameters = ({"name": "port", "in": "path"},)

    @describes("listTides", "The tides of a port", response=list[TideTime])
    def get(self, call: Call, port: str) -> Answer:
        return Answer([])

    @describes("addTide", "Add a tide", request=TideForm, response=TideTime)
    def post(self, call: Call, port: str) -> Answer:
        return Answer({})


class LowTidesView(TidesView):
    requires = Requires.APPLICATION

    def get(self, call: Call, port: str) -> Answer:
        return super().get(call, port)

    @describes("addLowTide", "Add a low tide", response=TideTime, requires=Requires.CLIENT_KEY)
    def post(self, call: Call, port: str) -> Answer:
        return Answer({})


def test_an_override_keeps_the_description_of_what_it_overrides():
    pattern = path("tides/<str:port_name>/low", LowTidesView.as_view())
    (route,) = routes_of([pattern])
    assert route.path == "/tides/{portName}/low"
    assert {name: each.id for name, each in route.operations.items()} == {
        "get": "listTides",
        "post": "addLowTide",
    }


def test_what_a_description_leaves_out_comes_from_the_view():
    (route,) = routes_of([path("tides/<str:port>/low", LowTidesView.as_view())])
    get, post = route.operations["get"], route.operations["post"]
    assert (get.tag, get.requires) == ("Tides", Requires.APPLICATION)
    assert post.requires is Requires.CLIENT_KEY
    assert get.parameters == ({"name": "port", "in": "path"},)
