"""Webhooks that only a worker delivers."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("functions", "0005_job_schedules")]

    operations = [
        migrations.AddField(
            "hook", "background", models.BooleanField(default=False, db_default=False)
        ),
    ]
