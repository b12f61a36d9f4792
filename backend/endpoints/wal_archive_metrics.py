"""The metrics of the archive of WAL (docs/metrics.md)."""

from __future__ import annotations

from collections.abc import Iterator
from time import time
from typing import Final

from django.conf import settings
from prometheus_client.core import GaugeMetricFamily, Metric

from backend.instance import wal_archive
from objects.database.statements import fetch

_WAITING: Final = """
SELECT coalesce(sum(pg_current_wal_insert_lsn() - restart_lsn), 0)::bigint
FROM pg_replication_slots WHERE starts_with(slot_name, %s)
"""


def of_wal_archive() -> Iterator[Metric]:
    """Yield how old each part of the archive is, and what waits; without values where WAL isn't to
    be archived. Where the state can't be read, WAL counts as failing. Raises ``DatabaseError``."""
    age = GaugeMetricFamily(
        "svc_wal_archive_age_seconds",
        "For how long a part hasn't been complete in the place of backups; infinite if never.",
        labels=("part",),
    )
    failing = GaugeMetricFamily(
        "svc_wal_archive_failing",
        "Whether the last attempt to archive a part has failed.",
        labels=("part",),
    )
    waiting = GaugeMetricFamily(
        "svc_wal_archive_waiting_bytes", "WAL that the server retains until it is archived."
    )
    gap = GaugeMetricFamily(
        "svc_wal_archive_gap_timestamp_seconds",
        "When archiving last began again because WAL was given up.",
    )
    state = wal_archive.State()
    if settings.EMBEDDED_POSTGRES:
        try:
            state = wal_archive.read(settings.DATA_FOLDER)
        except wal_archive.StateError:
            failing.add_metric([wal_archive.LOG], True)
    if state.is_on and not state.is_held:
        now = time()
        parts = {wal_archive.LOG: state.log, wal_archive.BASES: state.bases}
        # Where files are in a bucket, they aren't archived.
        if state.files.done is not None or state.files.trouble:
            parts[wal_archive.FILES] = state.files
        for name, part in parts.items():
            age.add_metric([name], wal_archive.age(part, now))
            failing.add_metric([name], bool(part.trouble))
        rows = fetch(_WAITING, (wal_archive.SLOT_PREFIX,), prepare=False)
        waiting.add_metric([], int(rows[0][0]))
        if state.gap is not None:
            gap.add_metric([], state.gap)
    yield from (age, failing, waiting, gap)
