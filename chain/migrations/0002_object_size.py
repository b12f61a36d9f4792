"""The constraint ``object_size`` (see ``objects.0012``) for the classes that clients may write."""

from django.db import migrations

TABLES = ("chain_blockchain", "chain_smart_contract", "chain_transaction")
ADD = (
    "ALTER TABLE {} ADD CONSTRAINT object_size CHECK"
    " (pg_column_size(data) <= 524288 OR octet_length(data::text) <= 16777216) NOT VALID"
)


class Migration(migrations.Migration):
    dependencies = [("chain", "0001_initial")]

    operations = [
        migrations.RunSQL(
            [ADD.format(table) for table in TABLES],
            [f"ALTER TABLE {table} DROP CONSTRAINT object_size" for table in TABLES],
        )
    ]
