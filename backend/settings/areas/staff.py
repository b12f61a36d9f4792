"""Staff: the accounts of the admin."""

from __future__ import annotations

from backend.settings.declaration import Area, choice


class Staff(Area):
    """How staff log in."""

    title = "Staff"

    STAFF_SECOND_FACTOR = choice(
        "optional",
        ("off", "optional", "required"),
        "whether staff log in to the admin with a second factor: `optional` for those who have set"
        " one up, `required` for all, `off` for none, see [admin.md](admin.md#second-factor)",
    )
