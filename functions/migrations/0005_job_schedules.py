"""The schedules of jobs under a name of their own, for the permissions of staff."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("django_celery_beat", "0019_alter_periodictasks_options"),
        ("functions", "0004_function_permissions"),
    ]

    operations = [
        migrations.CreateModel(
            name="JobSchedule",
            fields=[],
            options={
                "verbose_name": "job schedule",
                "verbose_name_plural": "job schedules",
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("django_celery_beat.periodictask",),
        )
    ]
