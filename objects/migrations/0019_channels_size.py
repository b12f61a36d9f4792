"""The constraint ``object_size`` of installations counts ``channels``, which has its own column.

Clients append to it without end otherwise. See ``0012`` for the form of the conditions.
"""

from django.db import migrations

TABLE = "ALTER TABLE objects_installation"
LIMITED = "(pg_column_size({0}) <= 524288 OR octet_length({0}::text) <= 16777216)"
DATA, CHANNELS = (LIMITED.format(name) for name in ("data", "channels"))
REMOVE = f"{TABLE} DROP CONSTRAINT object_size"
ADD = f"{TABLE} ADD CONSTRAINT object_size CHECK"


class Migration(migrations.Migration):
    dependencies = [("objects", "0018_push_publishing")]

    operations = [
        migrations.RunSQL(
            [REMOVE, f"{ADD} ({DATA} AND (channels IS NULL OR {CHANNELS})) NOT VALID"],
            [REMOVE, f"{ADD} {DATA} NOT VALID"],
        )
    ]
