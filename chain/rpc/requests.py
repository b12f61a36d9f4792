"""Running a step with a provider: failover, pauses, deadlines."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from time import monotonic, sleep
from typing import Final, TypeVar

from backend.logs.setup import get_logger
from chain.core.failures import (
    EmptyPromise,
    MissingBlocks,
    NodeFailure,
    RangeTooLarge,
    Refused,
    TryAgain,
    Unavailable,
)
from chain.core.node import Node
from chain.rpc.client.budget import OverBudget
from chain.rpc.pool import Member, Pool, pool_of
from chain.rpc.reports import report

log = get_logger("chain")

_T = TypeVar("_T")
ROUNDS: Final = 3
"""How often all providers are tried again, after a moment, or waited for."""
_ROUNDS_OF_REFUSALS: Final = 1
_REFUSALS: Final = (Refused, RangeTooLarge, MissingBlocks)
_LONGEST_TEXT: Final = 300
_BACKOFF = 0.1
_LONGEST_SLEEP = 2.0
_NEVER = float("inf")


def attempt(
    network_id: int,
    step: Callable[[Node], _T],
    *,
    seconds: float = 20.0,
    is_patient: bool = False,
) -> _T:
    """The outcome of ``step`` with a provider of the network, within this many seconds; if
    ``is_patient``, the only provider that can be used gets the time that its requests take.

    A step that raises ``TryAgain``, or what a provider refuses, is run again from its beginning
    with another provider, so it must not keep anything outside until it succeeds. If that one
    answers, the refusal counts against the health of the first. What else it raises comes out, so
    steps convert what is an answer, as ``contracts`` does with reverts. Raises ``Unavailable`` when
    no provider is available: at once if all are paused for long; and ``MissingBlocks`` if none has
    the blocks.
    """
    deadline = monotonic() + seconds
    pool = pool_of(network_id)
    members = pool.members()
    tried: set[Member] = set()
    refusals: dict[Member, NodeFailure] = {}
    rounds, most_rounds = 0, _ROUNDS_OF_REFUSALS
    last: NodeFailure | None = None
    while True:
        member = pool.choose(members, tried)
        if member is not None:
            try:
                until = deadline
                if is_patient:
                    until = max(until, monotonic() + pool.needs(member, members))
                outcome = _run(pool, members, member, step, until)
            except TryAgain as error:
                if isinstance(error, EmptyPromise):
                    pool.note_empty_promise(member, members, str(error))
                tried.add(member)
                last, most_rounds = error, ROUNDS
            except _REFUSALS as refusal:
                tried.add(member)
                last = refusals[member] = refusal
            else:
                refusals.pop(member, None)
                _note_refusals(refusals)
                return outcome
            finally:
                report(member)
            if monotonic() < deadline:
                continue
        rounds += 1
        wait = _wait(members, last, rounds)
        if rounds > most_rounds or monotonic() + wait >= deadline:
            if isinstance(last, MissingBlocks):
                raise last
            refused = last if isinstance(last, Refused) else None
            raise Unavailable(_reason(members, last), refused) from last
        sleep(wait)
        tried.clear()


def choose_another(network_id: int) -> None:
    """Have the next steps run with another provider, if there is one: see ``Pool``."""
    pool_of(network_id).choose_another()


def ask_several(
    network_id: int,
    step: Callable[[Node], _T],
    *,
    most: int = 2,
    seconds: float = 10.0,
    each: bool = False,
) -> list[_T]:
    """Return the outcomes of ``step`` with up to ``most`` different providers, one after the other.

    Those that don't answer are left out. All together have so many seconds, or with ``each`` every
    provider. For decisions that need more than one provider.
    """
    deadline = monotonic() + seconds
    pool = pool_of(network_id)
    members = pool.members()
    tried: set[Member] = set()
    results: list[_T] = []
    while len(results) < most and (each or monotonic() < deadline):
        member = pool.choose(members, tried)
        if member is None:
            break
        tried.add(member)
        if each:
            deadline = monotonic() + seconds
        try:
            results.append(_run(pool, members, member, step, deadline))
        except (TryAgain, *_REFUSALS):
            continue
        finally:
            report(member)
    return results


def witnesses(network_id: int, step: Callable[[Node], _T], *, seconds: float = 10.0) -> list[_T]:
    """The outcomes of ``step`` with two providers, or with the only one that the network has. For
    what can't be taken back: raises ``Unavailable`` if one of several is all that answers."""
    results = ask_several(network_id, step, seconds=seconds)
    if len(results) < min(2, max(1, len(pool_of(network_id).known()))):
        raise Unavailable("only one of the network's providers answers" if results else "no answer")
    return results


def _run(
    pool: Pool, members: list[Member], member: Member, step: Callable[[Node], _T], deadline: float
) -> _T:
    on_head = partial(pool.note_head, member, members)
    before = member.endpoint.waited
    try:
        return step(member.node(deadline - monotonic(), on_head=on_head))
    finally:
        pool.note_waiting(member, members, member.endpoint.waited - before)


def _note_refusals(refusals: dict[Member, NodeFailure]) -> None:
    for member, failure in refusals.items():
        member.health.refused(f"refuses what others answer: {failure}"[:_LONGEST_TEXT])
        log.warning(
            "a provider refuses what others answer",
            network=member.network_id,
            provider=member.name,
            error=str(failure),
        )
        report(member)


def _wait(members: list[Member], last: NodeFailure | None, rounds: int) -> float:
    """Return the seconds until the next round: a little, or until a short pause is over."""
    wait = 0.0
    if isinstance(last, OverBudget):
        wait = last.wait
    if all(member.health.is_paused for member in members):
        wait = max(wait, min((member.health.pause_left() for member in members), default=_NEVER))
    return wait + _BACKOFF * 2**rounds * random.random() if wait <= _LONGEST_SLEEP else _NEVER


def _reason(members: list[Member], last: NodeFailure | None) -> str:
    if not members:
        return "the network has no endpoint"
    if last is not None:
        return str(last)
    troubles = [member.health.trouble for member in members if member.health.trouble]
    return troubles[0] if troubles else "all providers are left alone for a while"
