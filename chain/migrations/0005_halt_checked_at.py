"""When the providers of a halted network were last compared with what is stored."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chain", "0004_block_timestamp")]

    operations = [
        migrations.AddField("cursor", "halt_checked_at", models.DateTimeField(blank=True, null=True))
    ]
