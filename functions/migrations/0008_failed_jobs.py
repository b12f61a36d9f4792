"""Failed runs by the time of their end: the admin counts those of each minute."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("functions", "0007_deliveries_by_hook")]

    operations = [
        migrations.AddIndex(
            "jobstatus",
            models.Index(
                condition=models.Q(status="failed"),
                fields=["finished_at"],
                name="functions_job_status_failed",
            ),
        ),
    ]
