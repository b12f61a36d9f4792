"""Whether the providers of a network say the same.

What one provider says of the newest blocks is compared with the others before it is stored: the
lower head wins, and of what differs nothing is stored, unless a header proves one of the two right.
Otherwise, with three or more, the majority is believed. The provider that is wrong is left out for
a minute. A provider that doesn't answer, or lags too far behind, has no say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Final, Protocol

import msgspec

from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from chain.core.blocks import consistency
from chain.core.failures import NodeFailure, RangeTooLarge, Refused, TryAgain, Undecided
from chain.core.node import Header, Log, LogFilter, Node, header_in
from chain.rpc.client.health import Cause
from chain.rpc.client.http_node import HttpNode
from chain.rpc.pool import Member, Pool, pool_of
from chain.rpc.reports import report

COMPARED: Final = 16
"""Blocks whose hashes are compared; of more, so many spread over them."""
PERSISTENT: Final = 15.0
"""Seconds that two providers have to differ until that is reported: for moments they often do."""
_ASKED = 2  # other providers, so that three have a say
_LEFT_OUT = 60.0
_DIFFERS = "differs from the other providers at block {}"

log = get_logger("chain")


class Evidence(Protocol):
    """What decides between two providers (``chain.indexing.verification.evidence``)."""

    def is_refuted(self, network_id: int, header: Header, /) -> bool:
        """Whether this can't be a header of the network."""

    def are_proved(
        self, node: Node, header: Header, logs: Sequence[Log], log_filter: LogFilter, /
    ) -> bool:
        """Whether this header, and the receipts of its block that the node has, prove these to be
        all the wanted logs of the block."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What is compared: blocks without a gap, and the wanted logs in them, as ``node`` has given
    them. ``member`` is its provider, None if that was removed meanwhile."""

    node: Node
    member: Member | None
    headers: Sequence[Header]
    log_filter: LogFilter
    logs: Sequence[Log]

    def logs_at(self, height: int) -> list[Log]:
        return [log for log in self.logs if log.height == height]


@dataclass(frozen=True, slots=True)
class _View:
    """What another provider has of the same blocks: all the same up to ``height``; from the block
    ``differs`` on something else, ``contents``; or neither, if it isn't that far yet. If it is the
    same block but has other logs, these are ``logs``. ``missing`` is a block below its head that it
    doesn't have."""

    member: Member
    tip: int
    height: int
    differs: int | None = None
    contents: object = None
    logs: Sequence[Log] | None = None
    missing: int | None = None


def witnessed(network_id: int) -> int | None:
    """The height up to which two providers have had the same chain, as far as this process knows
    (-1 if nothing is); None where a network has only one provider, which no other can confirm."""
    pool = pool_of(network_id)
    return pool.witnessed if len(pool.known()) > 1 else None


def agreed(
    node: Node,
    headers: Sequence[Header],
    log_filter: LogFilter | None = None,
    logs: Sequence[Log] = (),
    *,
    evidence: Evidence | None = None,
    seconds: float = 5.0,
) -> int:
    """The height up to which the other providers have the same as this one, below the first of the
    blocks if none of them yet; the last one's if there is no other provider.

    ``headers`` are blocks without a gap as ``node`` has answered them, ``logs`` what it has
    answered for ``log_filter`` in them; ``evidence`` decides between two responses. Call it inside
    the
    step that ``attempt`` runs. Raises ``Undecided`` if another provider has another first block, or
    other logs in it, and neither is proved: nothing is known then, and the caller tries again
    later. Raises ``TryAgain`` if ``node`` is disproved, or the majority differs from it:
    ``attempt`` goes on with another provider.
    """
    pool = pool_of(node.network_id)
    members = pool.known()
    pinned = next((member for member in members if member.name == node.provider), None)
    last = headers[-1].height
    if pinned is not None and (pinned.health.fresh_head or 0) < last:
        pinned.health.saw_head(last)
    answer = _Answer(node, pinned, headers, log_filter or LogFilter(), logs)
    views: list[_View] = []
    for other in _others(members, node.provider):
        if len(views) == _ASKED:
            break
        view = _view_or_none(pool, members, other, answer, evidence, seconds)
        if view is not None:
            views.append(view)
    believed = [_believed(view, answer, evidence, seconds) for view in views]
    height = _decided(pinned, headers, believed)
    shared = [view.height for view in views if view.height >= headers[0].height]
    pool.witnessed = max(shared) if shared else min(pool.witnessed, headers[0].height - 1)
    return height


def tags_of_others(node: Node, *, seconds: float = 5.0) -> list[tuple[int | None, int | None]]:
    """The safe and the final height of up to two other providers of the network, None for a tag
    that one doesn't have. Providers that don't answer are left out."""
    calls = [("eth_getBlockByNumber", (tag, False)) for tag in ("safe", "finalized")]
    heights: list[tuple[int | None, int | None]] = []
    for other in _others(pool_of(node.network_id).known(), node.provider):
        if len(heights) == _ASKED:
            break
        began = monotonic()
        try:
            safe, final = map(_height, other.node(seconds).batch(calls))
        except (NodeFailure, ValueError) as failure:
            pause = other.tags.failed()
            if pause is not None:
                _leave_out(other, f"doesn't say what is final: {failure}", pause)
        else:
            heights.append((safe, final))
            took = monotonic() - began
            pause = other.tags.succeeded(took)
            if pause is not None:
                _leave_out(other, f"slow: {took:.1f} s to say what is final", pause, "slow")
    return heights


def _height(answer: msgspec.Raw | NodeFailure) -> int | None:
    """The height of a tag; None if the provider refuses it, as those do that don't know it."""
    if isinstance(answer, NodeFailure):
        return None
    header = header_in(answer)
    return None if header is None else header.height


def _others(members: Sequence[Member], provider: str) -> list[Member]:
    usable = [
        member for member in members if member.name != provider and not member.health.is_paused
    ]
    return sorted(usable, key=lambda member: -member.given.weight)


def _believed(view: _View, answer: _Answer, evidence: Evidence | None, seconds: float) -> _View:
    """The view, or as much of it as is known to be right if it is wrong about logs: up to that
    block, which is proved. Raises ``TryAgain`` if the answer is wrong instead."""
    if view.logs is None or view.differs is None or evidence is None:
        return view
    ours = answer.logs_at(view.differs)
    if consistency.contents(ours) == consistency.contents(view.logs):
        return view  # only the hashes of transactions differ, which no receipt has
    header = next(each for each in answer.headers if each.height == view.differs)
    text = f"has other logs in block {header.height} than its receipts prove"
    if _is_proved(partial(evidence.are_proved, answer.node, header, ours, answer.log_filter)):
        _leave_out(view.member, text)
        return replace(view, height=view.differs, differs=None, contents=None, logs=None)
    logs = view.logs
    if answer.member is not None and _is_proved(
        lambda: evidence.are_proved(view.member.node(seconds), header, logs, answer.log_filter)
    ):
        _leave_out(answer.member, text)
        raise TryAgain(text)
    return view


def _is_proved(proof: Callable[[], bool]) -> bool:
    try:
        return proof()
    except (NodeFailure, ValueError):
        return False  # it doesn't have the receipts


def _decided(pinned: Member | None, headers: Sequence[Header], views: Sequence[_View]) -> int:
    differing = [view.differs for view in views if view.differs is not None]
    if not differing:
        return _without_difference(pinned, headers, views)
    lowest = min(differing)
    # Who doesn't have the block yet neither confirms nor contradicts it.
    wrong = [view for view in views if view.differs == lowest]
    if any(view.height >= lowest for view in views):
        for view in wrong:
            _leave_out(view.member, _DIFFERS.format(lowest))
        return _decided(pinned, headers, [view for view in views if view not in wrong])
    if len(wrong) > 1 and len({view.contents for view in wrong}) == 1 and pinned is not None:
        _leave_out(pinned, _DIFFERS.format(lowest))
        raise TryAgain("differs from the other providers")
    return _undecided(pinned, headers, views, lowest)


def _without_difference(
    pinned: Member | None, headers: Sequence[Header], views: Sequence[_View]
) -> int:
    for member in (pinned, *(view.member for view in views)):
        if member is not None:
            member.differs_since = None
    ahead = headers[-1].height - max((view.tip for view in views), default=headers[-1].height)
    if len(views) > 1 and ahead > service_settings.RPC_MAX_LAG and pinned is not None:
        _leave_out(pinned, f"is {ahead} blocks ahead of the other providers")
        raise TryAgain("is far ahead of the other providers")
    return min((view.height for view in views), default=headers[-1].height)


def _undecided(
    pinned: Member | None, headers: Sequence[Header], views: Sequence[_View], lowest: int
) -> int:
    """The height up to which all are the same, if that is a block of these. Of two providers that
    differ at the block ``lowest``, neither is known to be right."""
    height = min(view.height for view in views)
    if height >= headers[0].height:
        return height
    text = f"another provider has something else at block {lowest}"
    different = [view.member for view in views if view.differs is not None]
    for member in (pinned, *different):
        if member is not None and member.differs_for() >= PERSISTENT:
            member.health.note(text)
            log.error(
                "providers differ", network=member.network_id, provider=member.name, said=text
            )
    raise Undecided(f"two providers differ at block {lowest}")


def leave_out(network_id: int, provider: str, text: str) -> None:
    """Leave a provider alone for a minute that the caller has found to be wrong."""
    for member in pool_of(network_id).known():
        if member.name == provider:
            _leave_out(member, text)


def _leave_out(
    member: Member, text: str, seconds: float = _LEFT_OUT, cause: Cause = "differs"
) -> None:
    member.health.leave_out(text, cause, seconds)
    log.error("a provider is left out", network=member.network_id, provider=member.name, said=text)
    report(member)


def _view_or_none(
    pool: Pool,
    members: Sequence[Member],
    other: Member,
    answer: _Answer,
    evidence: Evidence | None,
    seconds: float,
) -> _View | None:
    """As ``_view``; None if it fails, since the provider has no say then. One that fails or is slow
    again and again is left out, which operators see."""
    began = monotonic()
    try:
        view = _view(pool, members, other, answer, evidence, seconds)
    except (NodeFailure, ValueError) as failure:
        if not other.health.is_paused:
            pause = other.comparisons.failed()
            if pause is not None:
                _leave_out(other, f"can't be compared: {failure}", pause)
        return None
    else:
        if view.missing is not None:
            # For a moment that is usual behind a load balancer: it isn't that far yet.
            pause = other.comparisons.failed()
            if pause is None:
                return view
            text = f"can't be compared: it has no block {view.missing} below its head"
            _leave_out(other, text, pause)
            return None
        took = monotonic() - began
        pause = other.comparisons.succeeded(took)
        if pause is not None:
            _leave_out(other, f"slow: {took:.1f} s for a comparison", pause, "slow")
        return view
    finally:
        report(other)


def _view(
    pool: Pool,
    members: Sequence[Member],
    other: Member,
    answer: _Answer,
    evidence: Evidence | None,
    seconds: float,
) -> _View:
    node = other.node(seconds, on_head=partial(pool.note_head, other, members))
    headers = answer.headers
    chosen = _spread(headers)
    tip, *theirs = node.headers(["latest", *(header.height for header in chosen)])
    if tip is None:
        raise TryAgain("no latest block")
    common = headers[0].height - 1
    missing: int | None = None
    differs: int | None = None
    heads: object = None
    for ours, their_header in zip(chosen, theirs, strict=True):
        if ours.height > tip.height:
            break
        if their_header is None:
            missing = ours.height
            break
        if their_header.hash != ours.hash:
            if evidence is not None and evidence.is_refuted(pool.network_id, their_header):
                text = f"block {ours.height} has another hash than it states"
                _leave_out(other, text)
                raise TryAgain(text)
            differs, heads = ours.height, their_header.hash
            break
        common = ours.height
    if answer.log_filter.addresses:
        odd = _first_odd(node, answer, common)
        if odd is not None:
            height, logs = odd
            heads = (height, frozenset(map(consistency.facts, logs)))
            return _View(other, tip.height, height - 1, height, heads, logs)
    return _View(other, tip.height, common, differs, heads, missing=missing)


def _first_odd(node: HttpNode, answer: _Answer, last: int) -> tuple[int, list[Log]] | None:
    """The first block up to ``last`` in which the node has other logs, and its logs of that block;
    None if none. Blocks in which its answer for a range differs are requested again by hash."""
    suspects = [header for header in answer.headers if header.height <= last]
    if len(suspects) > COMPARED:
        with suppress(RangeTooLarge, Refused):  # then each block is requested
            theirs = node.logs(answer.log_filter, suspects[0].height, last)
            ours = [log for log in answer.logs if log.height <= last]
            odd = {*map(consistency.facts, ours)} ^ {*map(consistency.facts, theirs)}
            heights = {fact[0] for fact in odd}
            suspects = [header for header in suspects if header.height in heights]
    for at in range(0, len(suspects), COMPARED):
        part = suspects[at : at + COMPARED]
        answers = node.logs_of(answer.log_filter, [header.hash for header in part])
        for header, logs in zip(part, answers, strict=True):
            if {*map(consistency.facts, answer.logs_at(header.height))} != {
                *map(consistency.facts, logs)
            }:
                return header.height, logs
    return None


def _spread(headers: Sequence[Header]) -> Sequence[Header]:
    if len(headers) <= COMPARED:
        return headers
    last = len(headers) - 1
    places: Iterable[int] = sorted({round(n * last / (COMPARED - 1)) for n in range(COMPARED)})
    return [headers[place] for place in places]
