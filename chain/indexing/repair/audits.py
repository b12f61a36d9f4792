"""Comparing what was read lately with the chain again, automatically.

An audit goes over the blocks since the last one that are final now, and over the newest ones, which
it compares again until they are final. Some of the blocks with events are compared by their
receipts, and all of them where a provider has contradicted itself (``Recheck``). What differs is
mended.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.db.models import F
from django.utils import timezone

from backend.kernel.errors import Timeout, TransactionConflict, UnderMaintenance
from backend.logs.setup import get_logger
from chain.core.failures import NodeFailure
from chain.indexing.history.progress import Lost
from chain.indexing.repair.examination import examine, final_height
from chain.indexing.repair.findings import Findings
from chain.indexing.verification.contradictions import recheck
from chain.models import Cursor, Recheck
from objects.core.values import wire_time
from objects.database import maintenance

SLICE: Final = 60.0  # seconds for each part of an audit; the next one goes on
NEWEST: Final = 300  # blocks above the final ones that are compared
PROBES: Final = 20
"""Blocks with events, of the final and of the newest ones, that are compared by their receipts
without a reason."""

UNCLEAR_FOR: Final = 3600.0
"""Seconds for which blocks of a recheck that aren't clear are compared again."""

log = get_logger("chain")


def audit(network_id: int) -> Findings | None:
    """Compare what was read since the last audit, and the blocks to be compared by receipts, and
    correct what differs.

    What was found, or None if there was nothing to compare, the network is halted or paused, or the
    comparison failed; the cursor's ``audit`` has the result or the trouble.
    """
    cursor = Cursor.objects.filter(pk=network_id).first()
    if cursor is None or cursor.number is None or cursor.halted is not None:
        return None
    audited = min(
        cursor.audited if cursor.audited is not None else cursor.began_at or 0,
        final_height(cursor),
    )
    # Recent blocks before history: that is the order of these texts backwards.
    rechecks = [*Recheck.objects.filter(network_id=network_id).order_by("-kind")]
    if (audited >= cursor.number and not rechecks) or maintenance.is_chain_paused():
        return None
    findings = Findings(audited + 1, cursor.number, audited)
    changes: dict[str, Any] = {}
    try:
        changes = _since(cursor, audited, findings)
        for row in rechecks:
            _by_receipts(row, findings)
        report = findings.as_json()
        changes["audited_at"] = timezone.now()
    except (NodeFailure, Lost, Timeout, TransactionConflict) as failure:
        report = {"trouble": str(failure) or "The contracts have changed meanwhile."}
    except UnderMaintenance:
        return None
    changes |= {"audit": report | {"at": wire_time(timezone.now())}}
    with maintenance.recording():
        Cursor.objects.filter(pk=network_id, audited=cursor.audited).update(
            mended=F("mended") + findings.mended, **changes
        )
    if not findings.is_clean:
        log.error(
            "what is stored differed from the chain",
            network=network_id,
            **{name: value for name, value in findings.as_json().items() if name != "examples"},
        )
    return None if "trouble" in report else findings


def _compared(network_id: int, first: int, last: int, **more: Any) -> Findings:
    return examine(
        network_id, first, last, repairing=True, keeps_blocks=True, seconds=SLICE, **more
    )


def _since(cursor: Cursor, audited: int, findings: Findings) -> dict[str, Any]:
    """Compare what has become final, then the newest blocks; what is to be noted of that."""
    network_id, final = cursor.network_id, final_height(cursor)
    if audited < final:
        part = _compared(network_id, audited + 1, final, probes=PROBES)
        findings.add(part)
        _recheck(network_id, part)
        if part.reached < final:
            return {"audited": part.reached, "audited_before": audited}
    newest = max(final, (cursor.number or 0) - NEWEST)
    if newest < (cursor.number or 0):
        part = _compared(network_id, newest + 1, cursor.number or 0, probes=PROBES)
        findings.add(part)
        _recheck(network_id, part)
    return {"audited": final, "audited_before": audited}


def _recheck(network_id: int, part: Findings) -> None:
    """Have the blocks that aren't clear compared again by the next audits."""
    if part.unclear:
        recheck(network_id, Recheck.RECENT, min(part.unclear), max(part.unclear))


def _by_receipts(recheck: Recheck, findings: Findings) -> None:
    """Compare some of these blocks by their receipts. What isn't clear is compared again by the
    next audits, for ``UNCLEAR_FOR`` seconds, since another provider may answer then."""
    part = _compared(recheck.network_id, recheck.next_block, recheck.last_block, by_receipts=True)
    findings.add(part)
    reached = part.reached + 1
    if timezone.now() - recheck.made_at < timedelta(seconds=UNCLEAR_FOR):
        reached = min([reached, *part.unclear])
    with maintenance.recording():
        rows = Recheck.objects.filter(pk=recheck.pk, next_block=recheck.next_block)
        rows.update(next_block=reached)
        rows = Recheck.objects.filter(pk=recheck.pk, last_block__lt=F("next_block"))
        rows.delete()
