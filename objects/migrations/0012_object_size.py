"""The constraint ``object_size``: an object's fields take at most 16 MiB as JSON.

Only objects of more than 512 KiB are converted to text to measure it: JSON text is at most 26 times
as long as jsonb (1e308 takes 12 bytes). Objects that are larger already stay as they are, until
they are written.
"""

from django.db import migrations

TABLES = (
    "objects_object",
    "objects_user",
    "objects_session",
    "objects_role",
    "objects_installation",
)
ADD = (
    "ALTER TABLE {} ADD CONSTRAINT object_size CHECK"
    " (pg_column_size(data) <= 524288 OR octet_length(data::text) <= 16777216) NOT VALID"
)


class Migration(migrations.Migration):
    dependencies = [("objects", "0011_file_quota_indexes")]

    operations = [
        migrations.RunSQL(
            [ADD.format(table) for table in TABLES],
            [f"ALTER TABLE {table} DROP CONSTRAINT object_size" for table in TABLES],
        )
    ]
