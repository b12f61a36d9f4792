"""The checks that the command ``doctor`` runs.

An application adds checks of its own in a module ``doctor``::

    from backend.kernel.doctor import Finding, check, fail, ok

    @check("chain endpoints", needs=("database",), seconds=10)
    def endpoints() -> Iterator[Finding]:
        yield ok("2 endpoints answer")
        yield fail("sepolia: no endpoint answers", "Look at the network's RPC addresses.")
"""

from backend.operations.doctor import (
    backups,
    engines,
    machine,
    processes,
    settings,
    versions,
    wal_archive,
)

__all__ = ["backups", "engines", "machine", "processes", "settings", "versions", "wal_archive"]
