"""Operations of migrations that change the table of events, whose view has its columns."""

from __future__ import annotations

from django.db.migrations import RunSQL
from django.db.migrations.operations.base import Operation

_CREATE = (
    "CREATE VIEW chain_contract_event_shown AS SELECT * FROM chain_contract_event WHERE canonical"
)
_DROP = "DROP VIEW chain_contract_event_shown"


def with_view(*operations: Operation) -> list[Operation]:
    """Return the operations between dropping and creating the view: PostgreSQL fixes a view's
    columns when it is created."""
    return [RunSQL(_DROP, _CREATE), *operations, RunSQL(_CREATE, _DROP)]
