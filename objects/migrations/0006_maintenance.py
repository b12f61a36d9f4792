"""Maintenance mode: whether it is on, and the view that every write reads it through."""

from django.db import migrations, models

# A dump locks tables for as long as it runs, and views not at all: so whoever holds a lock on the
# view has written in this transaction, or is about to.
VIEW = "CREATE VIEW objects_read_only AS SELECT message, chain_paused FROM objects_maintenance"


class Migration(migrations.Migration):
    dependencies = [("objects", "0005_config_events_answers")]

    operations = [
        migrations.CreateModel(
            name="Maintenance",
            fields=[
                ("id", models.SmallIntegerField(primary_key=True, serialize=False)),
                ("message", models.TextField()),
                ("since", models.DateTimeField()),
                ("chain_paused", models.BooleanField()),
            ],
            options={
                "verbose_name": "maintenance mode",
                "verbose_name_plural": "maintenance mode",
                "db_table": "objects_maintenance",
            },
        ),
        migrations.RunSQL(VIEW, "DROP VIEW objects_read_only"),
    ]
