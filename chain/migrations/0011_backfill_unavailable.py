"""Backfills of blocks that no provider has."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chain", "0010_cursor_text")]

    operations = [
        migrations.AddField(
            "backfill",
            "unavailable",
            models.BooleanField(default=False, db_default=False),
        )
    ]
