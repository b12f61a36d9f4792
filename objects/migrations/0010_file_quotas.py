"""Storage quotas: the account that a file is charged to, and quotas of single users."""

import django.db.models.deletion
from django.db import migrations, models

# Until now nothing told the uploads of the public from those of the master key.
CHARGED = """
UPDATE objects_file SET charged_to = owner_id WHERE owner_id IS NOT NULL;
INSERT INTO objects_file_usage (account, bytes)
SELECT charged_to, sum(size) FROM objects_file WHERE charged_to IS NOT NULL GROUP BY charged_to;
"""


class Migration(migrations.Migration):
    dependencies = [("objects", "0009_changes")]

    operations = [
        migrations.AddField(
            "storedfile", "charged_to", models.TextField(db_collation="C", null=True)
        ),
        migrations.AddField(
            "storedfile", "complete", models.BooleanField(default=True, db_default=True)
        ),
        migrations.CreateModel(
            name="FileQuota",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="file_quota",
                        serialize=False,
                        to="objects.user",
                    ),
                ),
                ("quota", models.BigIntegerField()),
            ],
            options={"db_table": "objects_file_quota"},
        ),
        migrations.CreateModel(
            name="FileUsage",
            fields=[
                ("account", models.TextField(db_collation="C", primary_key=True, serialize=False)),
                ("bytes", models.BigIntegerField()),
            ],
            options={"db_table": "objects_file_usage"},
        ),
        migrations.RunSQL(CHARGED, migrations.RunSQL.noop),
    ]
