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
    """Yield how old each part of the archive is; nothing where WAL isn't to be archived. Raises
    ``DatabaseError``."""
    state = wal_archive.read(settings.DATA_FOLDER)
    if not (settings.EMBEDDED_POSTGRES and state.is_on) or state.is_held:
        return
    age = GaugeMetricFamily(
        "svc_wal_archive_age_seconds",
        "For how long a part hasn't been complete in the place of backups; infinite if never.",
        labels=("part",),
    )
    trouble = GaugeMetricFamily(
        "svc_wal_archive_failing",
        "Whether the last attempt to archive a part has failed.",
        labels=("part",),
    )
    now = time()
    parts = {
        wal_archive.LOG: state.log,
        wal_archive.BASES: state.bases,
        wal_archive.FILES: state.files,
    }
    for name, part in parts.items():
        # Where files are in a bucket, they aren't archived.
        if name != wal_archive.FILES or part.done is not None or part.trouble:
            age.add_metric([name], wal_archive.age(part, now))
            trouble.add_metric([name], bool(part.trouble))
    yield age
    yield trouble
    waiting = GaugeMetricFamily(
        "svc_wal_archive_waiting_bytes", "WAL that the server keeps until it is archived."
    )
    waiting.add_metric([], int(fetch(_WAITING, (wal_archive.SLOT_PREFIX,), prepare=False)[0][0]))
    yield waiting
    if state.gap is not None:
        gap = GaugeMetricFamily(
            "svc_wal_archive_gap_timestamp_seconds",
            "When archiving last began again because WAL was given up.",
        )
        gap.add_metric([], state.gap)
        yield gap
