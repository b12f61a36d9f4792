"""Advisory locks: no two of them are the same one."""

from __future__ import annotations

from backend.kernel.connections import advisory_locks
from backend.kernel.connections.advisory_locks import AdvisoryLock

LOCKS = {
    name: lock for name, lock in vars(advisory_locks).items() if isinstance(lock, AdvisoryLock)
} | {
    "chain_backfill": advisory_locks.chain_backfill(119),
    "chain_checks": advisory_locks.chain_checks(119),
    "chain_head": advisory_locks.chain_head(119),
    "class_name": advisory_locks.class_name("119"),
    "index_build": advisory_locks.index_build(119),
    "push_sender": advisory_locks.push_sender("119", "fcm", 1),
    "push_status": advisory_locks.push_status("119"),
    "request": advisory_locks.request("119"),
    "unique_value": advisory_locks.unique_value("119", "a", "b"),
}


def test_locks_for_different_things_never_wait_for_each_other() -> None:
    names: dict[AdvisoryLock, list[str]] = {}
    for name, lock in LOCKS.items():
        names.setdefault(lock, []).append(name)
    assert [same for same in names.values() if len(same) > 1] == []
