"""Sentences for the reasons that ``objects.access.policy`` records, for people to read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from backend.kernel.json_types import Json
from backend.kernel.principal import EVERYBODY, Principal
from objects.core.access.class_permissions import NOBODY, READ_ACTIONS, ClassPermissions
from objects.core.access.reasons import Reason, Rule
from objects.core.names import FieldName
from objects.core.query.predicate import matches
from objects.core.query.tree import Equals, WritableBy
from objects.core.values import pointer

_ROLE = "role:"
_MOST_NAMES = 20


@dataclass(frozen=True)
class Sentence:
    """A sentence with its details, and the roles that gave the caller access.

    ``is_open``: the sentence applies to every caller.
    """

    text: str
    details: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    is_open: bool = False


@dataclass(frozen=True)
class _Matter:
    """The subject of a sentence."""

    reason: Reason
    principal: Principal
    permissions: ClassPermissions
    class_name: str
    obj: Mapping[str, Json] | None


def sentence_for(
    reason: Reason,
    principal: Principal,
    permissions: ClassPermissions,
    class_name: str,
    obj: Mapping[str, Json] | None,
) -> Sentence:
    """Return a sentence for a reason, for this caller and this object, if any."""
    return _SENTENCES[reason.rule](_Matter(reason, principal, permissions, class_name, obj))


def describe(principal: Principal) -> str:
    """Return the caller in words, with the ids and roles that access lists and permissions name."""
    if principal.is_maintenance:
        return "the maintenance key"
    if principal.may_write_as_master:
        return "the master key"
    if principal.is_master:
        return "the read-only master key"
    if principal.user_id is None:
        return "a client that isn't logged in (*)"
    roles = f" with the roles {_names(sorted(principal.roles))}" if principal.roles else ""
    return f"the user {principal.user_id}{roles}"


def _names(names: Iterable[str]) -> str:
    all_names = list(names)
    more = len(all_names) - _MOST_NAMES
    return ", ".join(all_names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _roles(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(entity[len(_ROLE) :] for entity in ids if entity.startswith(_ROLE))


def _master_key(matter: _Matter) -> Sentence:
    return Sentence(
        f"{describe(matter.principal).capitalize()} passes the permissions of classes, those by"
        " pointers, and access lists."
    )


def _read_only(matter: _Matter) -> Sentence:
    return Sentence("The read-only master key reads everything and writes nothing.")


def _of_service(matter: _Matter) -> Sentence:
    return Sentence(
        f"{matter.class_name} is the service's own: only master keys may use it, regardless of"
        " its permissions."
    )


def _sessions(matter: _Matter) -> Sentence:
    if matter.reason.allows is False:
        return Sentence("Sessions are for users who are logged in.")
    return Sentence("Users see, change and end their own sessions, and no others.")


def _installations(matter: _Matter) -> Sentence:
    return Sentence("Installations are listed, counted and removed with the master key alone.")


def _class_permissions(matter: _Matter) -> Sentence:
    reason, action = matter.reason, matter.reason.action
    entry = next(iter(reason.because), None)
    if entry == EVERYBODY:
        return Sentence(f"{action} is open to everybody (*).", is_open=True)
    if entry == "requiresAuthentication":
        return Sentence(f"{action} is for logged-in users (requiresAuthentication).")
    if entry is not None:
        who = entry if entry.startswith(_ROLE) else f"this user ({entry})"
        return Sentence(f"{action} names {who}.", roles=_roles(reason.because))
    rule = matter.permissions.rules.get(action, NOBODY)
    named = f"names {_names(sorted(rule.entities))}" if rule.entities else "names nobody"
    details = [f"The caller is {describe(matter.principal)}."]
    if rule.pointer_fields or (action not in READ_ACTIONS and matter.permissions.write_user_fields):
        details.append("Users whom its fields name don't count before there is an object.")
    return Sentence(f"{action} {named}: it is refused to the caller.", tuple(details))


def _pointers(matter: _Matter) -> Sentence:
    reason, user_id = matter.reason, matter.principal.user_id
    text = f"{reason.action} is for users whom the object names in {_names(reason.because)}."
    if user_id is None:
        return Sentence(text, ("The caller is no user.",))
    if matter.obj is None:
        return Sentence(text)
    user = pointer("_User", user_id)
    obj = dict(matter.obj)
    naming = [name for name in reason.because if matches(Equals((FieldName(name),), user), obj)]
    if naming:
        return Sentence(text, (f"It names this user in {_names(naming)}.",))
    return Sentence(text, ("It doesn't name this user.",))


def _access_list(matter: _Matter) -> Sentence:
    right = "read" if matter.reason.action in READ_ACTIONS else "write"
    does = "reads" if right == "read" else "changes and deletes"
    if matter.obj is None:
        return Sentence(f"Its access list says who {does} an object.")
    acl = matter.obj.get("ACL")
    needs_name = isinstance(matter.reason.condition, WritableBy) and (
        matter.reason.condition.is_named
    )
    if not isinstance(acl, dict):
        if needs_name:
            return Sentence("The account has no access list that names the caller.")
        return Sentence(f"The object has no access list: everybody {does} it.", is_open=True)
    listed = [
        entity for entity, rights in acl.items() if isinstance(rights, dict) and rights.get(right)
    ]
    own = sorted(set(listed) & matter.principal.acl_ids)
    if needs_name and EVERYBODY in own:
        own.remove(EVERYBODY)
        if not own:
            return Sentence(
                "The access list lets everybody write (*), which counts for nothing in accounts."
            )
    if EVERYBODY in own:
        return Sentence(f"The access list lets everybody {right} (*).", is_open=True)
    if own:
        return Sentence(f"The access list lets {_names(own)} {right}.", roles=_roles(own))
    text = f"The access list lets {_names(sorted(listed))} {right}, and not the caller."
    if not listed:
        text = f"The access list lets nobody {right} but the master key."
    return Sentence(text, (f"The caller is {describe(matter.principal)}.",))


def _own_account(matter: _Matter) -> Sentence:
    if matter.reason.allows:
        return Sentence("It is the user's own account.")
    return Sentence(
        "An account is changed and removed by its own user, by users and roles that its access list"
        " names, and with the master key."
    )


_SENTENCES: Mapping[Rule, Callable[[_Matter], Sentence]] = {
    "master key": _master_key,
    "read-only master key": _read_only,
    "class of the service": _of_service,
    "sessions": _sessions,
    "installations": _installations,
    "class permissions": _class_permissions,
    "pointer permissions": _pointers,
    "access list": _access_list,
    "own account": _own_account,
}
