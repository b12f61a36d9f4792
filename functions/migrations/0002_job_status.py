"""Runs of jobs: the class _JobStatus."""

import django.contrib.postgres.fields
from django.db import migrations, models


def _text(**options):
    return models.TextField(blank=True, db_collation="C", null=True, **options)


class Migration(migrations.Migration):
    dependencies = [("functions", "0001_feature_flags")]

    operations = [
        migrations.CreateModel(
            name="JobStatus",
            fields=[
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
                (
                    "read_acl",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, null=True, size=None
                    ),
                ),
                (
                    "write_acl",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, null=True, size=None
                    ),
                ),
                ("data", models.JSONField(default=dict)),
                (
                    "object_id",
                    models.TextField(db_collation="C", primary_key=True, serialize=False),
                ),
                ("job_name", _text()),
                ("source", _text()),
                ("status", _text()),
                ("message", _text()),
                ("error", _text()),
                ("params", models.JSONField(blank=True, null=True)),
                ("attempt", models.IntegerField(default=0)),
                ("skipped", models.IntegerField(default=0)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("exclusive", models.BooleanField(default=True)),
                ("occasion", _text(unique=True)),
                ("request_id", _text()),
                ("published_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name": "job run",
                "verbose_name_plural": "job runs",
                "db_table": "functions_job_status",
                "ordering": ("-created_at",),
                "indexes": [
                    models.Index(fields=["created_at"], name="functions_job_status_age"),
                    models.Index(
                        condition=models.Q(("status__in", ("queued", "running"))),
                        fields=["status"],
                        name="functions_job_status_open",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("exclusive", True), ("status__in", ("queued", "running"))
                        ),
                        fields=("job_name",),
                        name="functions_job_status_alone",
                    )
                ],
            },
        ),
    ]
