"""The parameters of the app: who may see them, who may change them, what they may be.

Everybody with a client key reads those that aren't for the master key alone; the master key reads
and changes all of them. A save changes the parameters that it names and leaves the others. Saves
wait for each other, so two at the same moment are one after the other and neither is lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import msgspec
from django.db.models import JSONField, TextField, Value
from django.db.models.functions import Cast, Now

from backend.kernel.errors import (
    CommandUnavailable,
    InvalidJSON,
    MasterKeyRequired,
    ObjectTooLarge,
    OperationForbidden,
)
from backend.kernel.json_types import Json
from backend.kernel.principal import Principal
from backend.kernel.texts.shown import shown
from objects import triggers
from objects.app_config.models import AppConfig
from objects.core.names import PROHIBITED_KEYS, check_field_name, prohibited
from objects.core.update.operators import OPERATORS, Delete, Operation, Set, SetOnInsert
from objects.core.values import normalise
from objects.database import maintenance
from objects.database.orm import orm_queries
from objects.file_urls import is_stored_name
from objects.triggers import CONFIG, Occasion

# All of it goes to every client that asks.
MOST_PARAMS: Final = 1000
MOST_BYTES: Final = 1024 * 1024

_ROW: Final = 1
_OPERATORS: Final = frozenset({"Delete", "Increment", "Add", "AddUnique", "Remove", "SetOnInsert"})


@dataclass(frozen=True, slots=True)
class Config:
    """Parameters by name in wire form, and the names of those for the master key alone."""

    params: Mapping[str, Json]
    master_key_only: frozenset[str] = frozenset()

    def shown_to(self, principal: Principal) -> Config:
        """What of it this caller may see."""
        if principal.has_master_key:
            return self
        hidden = self.master_key_only
        return Config({name: value for name, value in self.params.items() if name not in hidden})

    def wire(self) -> dict[str, Json]:
        """``{"params": {…}, "masterKeyOnly": {name: true}}``, as ``/config`` answers."""
        return {
            "params": dict(self.params),
            "masterKeyOnly": dict.fromkeys(sorted(self.master_key_only), True),
        }

    def state_of(self, name: str) -> str:
        """A text that is another one if the parameter, or who may see it, is; empty without it."""
        if name not in self.params:
            return ""
        state = msgspec.json.encode([self.params[name], name in self.master_key_only])
        return hashlib.sha256(state).hexdigest()


def read(principal: Principal) -> Config:
    """The parameters that the caller may see."""
    return _stored(locked=False).shown_to(principal)


@maintenance.reported_first
def save(
    principal: Principal,
    body: Mapping[str, Any],
    provided: Callable[[Config], bool] | None = None,
) -> bool:
    """Set the parameters that the body names, or change them by update operators.

    ``body`` is ``{"params": {…}, "masterKeyOnly": {name: bool}}``; a parameter that is set and not
    named there is for everybody from now on, as Parse's SDKs say. Raises ``MasterKeyRequired``,
    ``OperationForbidden`` (the read-only master key), ``InvalidKeyName``, ``InvalidJSON``,
    ``CommandUnavailable`` (another operator), ``IncorrectType`` (an operator can't work on the
    value), ``ObjectTooLarge``, ``UnderMaintenance``, what ``values.normalise`` raises, and what a
    trigger of ``@Config`` raises; nothing is changed then.
    Every save goes through here. Triggers see all parameters by name, as they will be and as they
    were; the one before the save may change them.

    ``provided`` checks what is stored, while no other save can change it; if it says no,
    nothing is saved, and the answer is False.
    """
    _check_may_save(principal)
    params = _params(body.get("params"))
    hidden = _flags(body.get("masterKeyOnly"), params)
    with maintenance.writing():
        before = _stored(locked=True)
        if provided is not None and not provided(before):
            return False
        after = _as_triggers_want(principal, before, _changed(before, params, hidden))
        _store(after)
        triggers.run_after_commit(_occasion("after_save", principal, before, after))
    return True


def _check_may_save(principal: Principal) -> None:
    if not principal.has_master_key:
        raise MasterKeyRequired
    if not principal.may_write_as_master:
        raise OperationForbidden("read-only masterKey isn't allowed to update the config.")


def _params(values: object) -> dict[str, Operation]:
    """The changes of parameters by name, checked."""
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InvalidJSON("params: expected an object")
    return {_name(name): _value(name, value) for name, value in values.items()}


def _name(name: str) -> str:
    if name in PROHIBITED_KEYS:
        raise prohibited(name)
    return check_field_name(name, "params")


def _value(name: str, value: object) -> Operation:
    if isinstance(value, dict) and "__op" in value:
        operator = value["__op"]
        if not isinstance(operator, str) or operator not in _OPERATORS:
            raise CommandUnavailable(
                f"params.{shown(name)}: The {shown(operator)} operator is not supported here."
            )
        return OPERATORS[operator].parse(f"params.{name}", value)
    # A parameter is no field of a class, so it can't be a Relation.
    return Set(_with_address(normalise(value, ("params", name), depth=1), value))


def _with_address(parameter: Json, sent: object) -> Json:
    """Return a parameter; a File that isn't stored here keeps the address that it was saved with.

    Only the master key saves parameters, so clients can't lead others to an address this way.
    """
    url = sent.get("url") if isinstance(sent, dict) else None
    if (
        isinstance(parameter, dict)
        and parameter.get("__type") == "File"
        and isinstance(url, str)
        and not is_stored_name(str(parameter["name"]))
    ):
        return {**parameter, "url": url}
    return parameter


_DELETION: Final = {"__op": "Delete"}


def _flags(value: object, params: Mapping[str, Any]) -> frozenset[str]:
    if value is None:
        return frozenset()
    if not isinstance(value, dict):
        raise InvalidJSON("masterKeyOnly: expected an object")
    # Parse Dashboard deletes the flag together with the parameter.
    value = {name: None if flag == _DELETION else flag for name, flag in value.items()}
    for name, flag in value.items():
        if flag is not None and type(flag) is not bool:
            raise InvalidJSON(f"masterKeyOnly.{shown(name)}: expected true or false")
        if flag and name not in params:
            # Ignored, it would leave a secret visible unnoticed.
            raise InvalidJSON(f"masterKeyOnly.{shown(name)}: params doesn't set it")
    return frozenset(name for name, flag in value.items() if flag)


def _changed(before: Config, changes: Mapping[str, Operation], hidden: frozenset[str]) -> Config:
    params = dict(before.params)
    for name, operation in changes.items():
        if isinstance(operation, Delete):
            params.pop(name, None)
        elif isinstance(operation, SetOnInsert):
            params.setdefault(name, operation.value)
        else:
            params[name] = operation.outcome(params.get(name), f"params.{name}")
    if len(params) > MOST_PARAMS:
        raise ObjectTooLarge(f"params: the config has at most {MOST_PARAMS} parameters")
    named = before.master_key_only - changes.keys() | hidden
    return Config(params, named & params.keys())


def _as_triggers_want(principal: Principal, before: Config, after: Config) -> Config:
    if not triggers.has(CONFIG, "before_save"):
        return after
    returned = triggers.run(_occasion("before_save", principal, before, after)).object
    return _changed(Config({}, after.master_key_only), _params(returned), after.master_key_only)


def _occasion(
    event: Literal["before_save", "after_save"], principal: Principal, before: Config, after: Config
) -> Occasion:
    return Occasion(
        event, CONFIG, principal, object=dict(after.params), original=dict(before.params) or None
    )


def _stored(*, locked: bool) -> Config:
    """What is stored. ``locked`` for the transaction, also if nothing is stored yet."""
    # As text: the json module reads 1e22 as an integer, which msgspec doesn't write.
    texts = (Cast("params", TextField()), Cast("master_key_only", TextField()))
    with orm_queries():
        configs = AppConfig.objects.filter(pk=_ROW)
        if locked:
            empty = AppConfig(pk=_ROW, params={}, master_key_only=[], updated_at=Now())
            AppConfig.objects.bulk_create([empty], ignore_conflicts=True)
            configs = configs.select_for_update()
        row = configs.values_list(*texts).first()
    if row is None:
        return Config({})
    params, names = (msgspec.json.decode(text) for text in row)
    return Config(cast("dict[str, Json]", params), frozenset(names))


def _store(config: Config) -> None:
    params = msgspec.json.encode(config.params)
    if len(params) > MOST_BYTES:
        raise ObjectTooLarge(f"params: the config is larger than {MOST_BYTES} bytes")
    with orm_queries():
        AppConfig.objects.filter(pk=_ROW).update(
            params=Cast(Value(params.decode()), JSONField()),
            master_key_only=sorted(config.master_key_only),
            updated_at=Now(),
        )
