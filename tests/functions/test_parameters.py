"""The parameters of a function come from its signature and are checked before its body runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import pytest

from backend.kernel.errors import ScriptFailed
from functions import Meta, Pointer
from functions.runtime.parameters import of_signature
from functions.runtime.values import File


def read(body: Any, params: dict[str, Any]) -> dict[str, Any]:
    return of_signature(body).read(params)


def refusal(body: Any, params: dict[str, Any]) -> str:
    with pytest.raises(ScriptFailed) as caught:
        read(body, params)
    assert caught.value.code == 141
    return caught.value.message


def pay(request, amount: Annotated[int, Meta(ge=1, le=100)], note: str = "", to: str | None = None):
    """Pay a user."""


def test_what_is_missing_is_named_with_what_was_expected() -> None:
    assert refusal(pay, {}) == "Missing parameter: amount (a whole number)"


def test_defaults_stand_in_for_what_is_not_given() -> None:
    assert read(pay, {"amount": 5}) == {"amount": 5}
    assert read(pay, {"amount": 5, "note": "x", "to": None}) == {
        "amount": 5,
        "note": "x",
        "to": None,
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"amount": "5"}, "Invalid parameter amount: expected a whole number, got text"),
        ({"amount": 5.5}, "Invalid parameter amount: expected a whole number, got a number"),
        ({"amount": True}, "Invalid parameter amount: expected a whole number, got true or false"),
        ({"amount": None}, "Invalid parameter amount: expected a whole number, got null"),
        ({"amount": {}}, "Invalid parameter amount: expected a whole number, got an object"),
        ({"amount": 0}, "Invalid parameter amount: expected a whole number >= 1"),
        ({"amount": 101}, "Invalid parameter amount: expected a whole number <= 100"),
        ({"amount": 1, "to": 5}, "Invalid parameter to: expected text or null, got a whole number"),
        ({"amount": 1, "note": []}, "Invalid parameter note: expected text, got a list"),
    ],
)
def test_what_does_not_fit_is_named_with_what_was_expected(
    value: dict[str, Any], text: str
) -> None:
    assert refusal(pay, value) == text


def test_a_place_inside_of_a_parameter_is_named() -> None:
    def take(request, items: list[dict[str, int]]): ...

    message = refusal(take, {"items": [{"a": 1}, {"a": "x"}]})
    assert message.startswith("Invalid parameter items: [1][...]: expected a whole number")


@dataclass
class Size:
    width: int
    height: int = 1


def test_choices_and_dataclasses_are_understood() -> None:
    def take(request, colour: Literal["red", "blue"], size: Size | None = None): ...

    assert read(take, {"colour": "red"}) == {"colour": "red"}
    assert "colour" in refusal(take, {"colour": "green"})
    assert read(take, {"colour": "red", "size": {"width": 2}})["size"] == Size(2, 1)
    assert refusal(take, {"colour": "red", "size": {"width": "x"}}) == (
        "Invalid parameter size: width: expected a whole number, got text"
    )


@dataclass
class Table:
    room: Literal["inside", "outside"]
    when: datetime | None = None


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("room", "roof", "expected one of 'inside', 'outside', got 'roof'"),
        ("rooms", ["inside", "roof"], "[1]: expected one of 'inside', 'outside', got 'roof'"),
        ("named", {"a": "roof"}, "[...]: expected one of 'inside', 'outside', got 'roof'"),
        ("table", {"room": "x"}, "room: expected one of 'inside', 'outside', got 'x'"),
        ("pair", [1, 3], "[1]: expected one of 1, 2, got 3"),
        ("level", 3, "expected one of 1, 2, got 3"),
        ("maybe", "x", "expected one of 'yes', got 'x'"),
        ("room", "`int`", "expected one of 'inside', 'outside', got ''int''"),
    ],
)
def test_the_error_of_a_choice_names_the_values_that_there_are(
    name: str, value: Any, text: str
) -> None:
    def take(
        request,
        room: Literal["inside", "outside"] = "inside",
        rooms: list[Literal["inside", "outside"]] | None = None,
        named: dict[str, Literal["inside", "outside"]] | None = None,
        table: Table | None = None,
        pair: tuple[int, Literal[1, 2]] | None = None,
        level: Literal[1, 2] = 1,
        maybe: Literal["yes"] | None = None,
    ): ...

    assert refusal(take, {name: value}) == f"Invalid parameter {name}: {text}"


def test_long_values_and_lists_of_choices_are_cut() -> None:
    many = Literal[tuple(range(1000))]

    def take(request, room: Literal["inside"] = "inside", number: int = 0): ...

    take.__annotations__["number"] = many
    assert len(refusal(take, {"room": "x" * 5000})) < 200
    assert refusal(take, {"number": 5000}).endswith(" 19, …, got 5000")


def test_a_missing_choice_is_named_with_the_values_that_there_are() -> None:
    def take(request, room: Literal["inside", "outside"]): ...

    assert refusal(take, {}) == "Missing parameter: room (one of 'inside', 'outside')"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("when", "2026-01-01", "expected a Date, or a date and time in ISO 8601"),
        ("table", {"room": "inside", "when": "x"}, "when: expected a Date, or a date and time"),
        ("day", "tomorrow", "expected a date in ISO 8601 such as 2026-01-31"),
        ("after", "x", "expected a duration in ISO 8601 such as PT90S"),
    ],
)
def test_the_error_of_a_time_says_how_it_is_written(name: str, value: Any, text: str) -> None:
    def take(
        request,
        when: datetime | None = None,
        table: Table | None = None,
        day: date | None = None,
        after: timedelta | None = None,
    ): ...

    assert refusal(take, {name: value}).startswith(f"Invalid parameter {name}: {text}")


class Visit(NamedTuple):
    at: datetime


class Stay(msgspec.Struct, frozen=True):
    times: tuple[datetime, ...]
    next: Stay | None = None


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (datetime, "{}", "{}"),
        (datetime | None, "{}", "{}"),
        (list[datetime], ["{}", "{}"], ["{}", "{}"]),
        (dict[str, datetime], {"a": "{}"}, {"a": "{}"}),
        (Table, {"room": "inside", "when": "{}"}, Table("inside", "{}")),
        (Visit, ["{}"], Visit("{}")),
        (Stay, {"times": ["{}"], "next": {"times": []}}, Stay(("{}",), Stay(()))),
        (list[Table], [{"room": "inside", "when": "{}"}], [Table("inside", "{}")]),
    ],
)
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-03-31T02:30:00", datetime(2024, 3, 31, 2, 30, tzinfo=UTC)),
        ("2024-03-31T02:30:00Z", datetime(2024, 3, 31, 2, 30, tzinfo=UTC)),
        ("2024-03-31T02:30:00+02:00", datetime(2024, 3, 31, 0, 30, tzinfo=UTC)),
    ],
)
def test_times_without_a_zone_are_in_utc_at_any_depth(
    type_: Any, value: Any, expected: Any, text: str, moment: datetime
) -> None:
    def take(request, value): ...

    take.__annotations__["value"] = type_
    (argument,) = read(take, {"value": filled(value, text)}).values()
    assert argument == filled(expected, moment)
    assert all(time.tzinfo is not None for time in times_in(argument))


def filled(value: Any, content: Any) -> Any:
    """Return the value with ``content`` in place of each ``"{}"``."""
    if isinstance(value, str):
        return content if value == "{}" else value
    if isinstance(value, dict):
        return {key: filled(item, content) for key, item in value.items()}
    if isinstance(value, Visit):
        return Visit(content)
    if isinstance(value, list | tuple):
        return type(value)(filled(item, content) for item in value)
    if isinstance(value, Table):
        return Table(value.room, content)
    if isinstance(value, Stay):
        return Stay(filled(value.times, content), filled(value.next, content))
    return value


def times_in(value: Any) -> list[datetime]:
    if isinstance(value, datetime):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif isinstance(value, Table):
        value = [value.when]
    elif isinstance(value, Stay):
        value = [*value.times, value.next]
    return [time for item in value or () if not isinstance(item, str) for time in times_in(item)]


def test_a_zone_that_a_function_forbids_stays_forbidden() -> None:
    def take(request, local: Annotated[datetime, Meta(tz=False)]): ...

    assert read(take, {"local": "2024-03-31T02:30:00"})["local"].tzinfo is None
    assert "Invalid parameter local" in refusal(take, {"local": "2024-03-31T02:30:00Z"})


def test_a_type_that_is_not_known_at_the_top_of_its_module_is_a_mistake() -> None:
    class Local: ...

    def take(request, a: Local): ...

    with pytest.raises(TypeError, match="isn't known where it is written"):
        of_signature(take)


def test_typed_values_are_what_they_are() -> None:
    def take(request, who: Pointer, what: File | None = None, when: datetime | None = None): ...

    pointer = Pointer("_User", "a")
    assert read(take, {"who": pointer})["who"] is pointer
    assert refusal(take, {"who": {"objectId": "a"}}) == (
        "Invalid parameter who: expected Pointer, got an object"
    )
    assert refusal(take, {"who": pointer, "what": pointer}) == (
        "Invalid parameter what: expected File, got Pointer"
    )


def test_what_the_signature_does_not_name_is_left_out_or_taken_by_its_last_parameter() -> None:
    def few(request, a: int = 1): ...
    def all_of_them(request, a: int = 1, **remaining: Any): ...

    assert read(few, {"b": 2}) == {}
    assert read(all_of_them, {"a": 3, "b": 2}) == {"a": 3, "b": 2}


def test_the_schema_says_types_constraints_defaults_and_descriptions() -> None:
    def take(
        request,
        n: Annotated[int, Meta(ge=1), "How many"],
        kind: Literal["a", "b"] = "a",
        who: Pointer | None = None,
    ): ...

    schema = of_signature(take).schema()
    assert schema["required"] == ["n"]
    assert schema["properties"]["n"] == {
        "type": "integer",
        "minimum": 1,
        "description": "How many",
    }
    assert schema["properties"]["kind"] == {"enum": ["a", "b"], "default": "a"}
    assert {"type": "null"} in schema["properties"]["who"]["anyOf"]


@pytest.mark.parametrize(
    "body",
    [
        lambda: None,
        lambda *args: None,
        lambda request, a, /: None,
        lambda request, *args: None,
    ],
)
def test_signatures_that_cannot_be_called_by_name_are_mistakes(body: Any) -> None:
    with pytest.raises(TypeError):
        of_signature(body)


def test_types_that_nothing_can_be_converted_to_are_mistakes() -> None:
    def take(request, who: Pointer | int): ...

    with pytest.raises(TypeError, match="the parameter who can't have this type"):
        of_signature(take)


def test_large_numbers_stay_whole() -> None:
    def take(request, wei: int): ...

    assert read(take, {"wei": 2**256 - 1}) == {"wei": 2**256 - 1}
