"""Listing and changing webhooks, for the master key; the read-only master key may list them.

A change of a trigger's webhook is effective in every process when the call returns. A Python
function takes precedence over a webhook of the same name, and a new webhook can't use its name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Literal

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from backend.kernel.errors import HookExists, InvalidHook, MasterKeyRequired, OperationForbidden
from backend.kernel.json_types import JsonObject
from backend.kernel.principal import Principal
from backend.kernel.texts.shown import shown
from functions.runtime.registry import registry
from functions.webhooks.models import Hook
from functions.webhooks.names import (
    AFTERWARDS,
    check_is_called,
    checked_background,
    checked_function,
    checked_subject,
    checked_trigger,
    checked_url,
)
from objects.core.names import Subject
from objects.database import maintenance
from objects.definitions import registry as class_registry


def functions(principal: Principal) -> list[JsonObject]:
    """Return the webhooks of functions, ordered by name."""
    _check_may_read(principal)
    return [_wire(hook) for hook in Hook.objects.filter(class_name=None).order_by("function_name")]


def triggers(principal: Principal) -> list[JsonObject]:
    """Return the webhooks of triggers, ordered by class and name."""
    _check_may_read(principal)
    hooks = Hook.objects.filter(function_name=None).order_by("class_name", "trigger_name")
    return [_wire(hook) for hook in hooks]


def function(principal: Principal, name: str) -> JsonObject:
    """Return the webhook of a function. Raises ``InvalidHook`` if there is none."""
    _check_may_read(principal)
    hook = Hook.objects.filter(function_name=name).first()
    if hook is None:
        raise _no_function(name)
    return _wire(hook)


def trigger(principal: Principal, class_name: Subject, trigger_name: str) -> JsonObject:
    """Return the webhook of a trigger. Raises ``InvalidHook`` if there is none."""
    _check_may_read(principal)
    hook = Hook.objects.filter(class_name=class_name, trigger_name=trigger_name).first()
    if hook is None:
        raise _no_trigger(class_name)
    return _wire(hook)


@maintenance.reported_first
def create(principal: Principal, body: JsonObject) -> JsonObject:
    """Declare ``{"functionName", "url"}`` or ``{"className", "triggerName", "url"}``.

    ``background`` (a boolean) says whether only a worker delivers an ``after…`` trigger. Raises
    ``HookExists``, and ``InvalidHook`` if the class doesn't support the trigger, or the URL isn't
    allowed.
    """
    _check_may_write(principal, "create")
    if body.get("functionName"):
        name = checked_function(body["functionName"])
        if name in registry.functions:
            raise HookExists(f"function name: {name} already exists, as a Python function")
        conflict = HookExists(f"function name: {name} already exists")
        hook = Hook(function_name=name)
    elif body.get("className") and body.get("triggerName"):
        class_name, trigger_name = checked_trigger(body["className"], body["triggerName"])
        conflict = HookExists(f"class {class_name} already has trigger {trigger_name}")
        hook = Hook(class_name=class_name, trigger_name=trigger_name)
    else:
        raise InvalidHook

    if Hook.objects.filter(**_identifying_columns(hook)).exists():
        raise conflict
    # Before the transaction, since it may wait for the resolver.
    hook.url = checked_url(body.get("url"))
    hook.background = checked_background(body.get("background"), hook.trigger_name) or False

    def insert() -> None:
        try:
            with transaction.atomic():
                hook.save(force_insert=True)
        except IntegrityError:
            raise conflict from None

    _change(None if hook.class_name is None else checked_subject(hook.class_name), insert)
    return _wire(hook)


@maintenance.reported_first
def update_function(principal: Principal, name: str, body: JsonObject) -> JsonObject:
    """Change the URL of a function. Raises ``InvalidHook``."""
    _check_may_write(principal, "modify")
    url = checked_url(body.get("url"))
    with maintenance.writing():
        hooks = Hook.objects.filter(function_name=name)
        if not hooks.update(url=url, rests_until=None, updated_at=Now()):
            raise _no_function(name)
    return _wire(Hook(function_name=name, url=url))


@maintenance.reported_first
def update_trigger(
    principal: Principal, class_name: Subject, trigger_name: str, body: JsonObject
) -> JsonObject:
    """Change the URL of a trigger, or whether only a worker delivers it.

    Raises ``InvalidHook``, also for a trigger that was declared earlier and is never called.
    """
    _check_may_write(principal, "modify")
    changes: dict[str, Any] = {"rests_until": None, "updated_at": Now()}
    background = checked_background(body.get("background"), trigger_name)
    if background is not None:
        changes["background"] = background
    if background is None or body.get("url") is not None:
        changes["url"] = checked_url(body.get("url"))
    check_is_called(class_name, trigger_name)
    # What changes here isn't cached, so the version of the class needn't change.
    with maintenance.writing():
        hooks = Hook.objects.filter(class_name=class_name, trigger_name=trigger_name)
        if not hooks.update(**changes):
            raise _no_trigger(class_name)
        return _wire(hooks.get())


def set_background(hook_ids: Collection[int], background: bool) -> int:
    """Let only a worker deliver these webhooks, or the requests too; return how many were changed.

    Skips those that aren't of ``after…`` triggers.
    """
    with maintenance.writing():
        hooks = Hook.objects.filter(pk__in=hook_ids, trigger_name__in=AFTERWARDS)
        changed = hooks.exclude(background=background)
        return changed.update(background=background, updated_at=Now())


@maintenance.reported_first
def delete_function(principal: Principal, name: str) -> None:
    """Remove the webhook of a function. A missing webhook isn't an error."""
    _check_may_write(principal, "modify")
    with maintenance.writing():
        Hook.objects.filter(function_name=name).delete()


@maintenance.reported_first
def delete_trigger(principal: Principal, class_name: Subject, trigger_name: str) -> None:
    """Remove the webhook of a trigger. A missing webhook isn't an error.

    Its pending deliveries are never sent.
    """
    _check_may_write(principal, "modify")
    hooks = Hook.objects.filter(class_name=class_name, trigger_name=trigger_name)
    _change(class_name, hooks.delete)


def _change(class_name: Subject | None, change: Callable[[], object]) -> None:
    with maintenance.writing():
        if class_name is not None:
            class_registry.renew(class_name)
        change()


def _identifying_columns(hook: Hook) -> dict[str, str | None]:
    names = ("function_name", "class_name", "trigger_name")
    return {name: value for name in names if (value := getattr(hook, name)) is not None}


def _wire(hook: Hook) -> JsonObject:
    if hook.function_name is None:
        of_trigger: JsonObject = {
            "className": hook.class_name,
            "triggerName": hook.trigger_name,
            "url": hook.url,
        }
        if hook.background:
            of_trigger["background"] = True
        return of_trigger
    wire: JsonObject = {"functionName": hook.function_name, "url": hook.url}
    if hook.function_name in registry.functions:
        wire["shadowed"] = True  # a later version of the deployment brings it in Python
    return wire


def _no_function(name: str) -> InvalidHook:
    return InvalidHook(f"no function named: {shown(name)} is defined")


def _no_trigger(class_name: Subject) -> InvalidHook:
    return InvalidHook(f"class {shown(class_name)} does not exist")


def _check_may_read(principal: Principal) -> None:
    if not principal.has_master_key:
        raise MasterKeyRequired


def _check_may_write(principal: Principal, action: Literal["create", "modify"]) -> None:
    _check_may_read(principal)
    if not principal.may_write_as_master:
        raise OperationForbidden(f"read-only masterKey isn't allowed to {action} a hook.")
