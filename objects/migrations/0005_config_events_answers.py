"""Parameters of the app, events of analytics, answers kept for repeated requests."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("objects", "0004_cascades")]

    operations = [
        migrations.CreateModel(
            name="AppConfig",
            fields=[
                ("id", models.SmallIntegerField(primary_key=True, serialize=False)),
                ("params", models.JSONField(default=dict)),
                ("master_key_only", models.JSONField(default=list)),
                ("updated_at", models.DateTimeField()),
            ],
            options={
                "verbose_name": "config",
                "verbose_name_plural": "config",
                "db_table": "objects_config",
            },
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.TextField(db_collation="C")),
                ("dimensions", models.JSONField(default=dict)),
                ("at", models.DateTimeField()),
                ("received_at", models.DateTimeField()),
            ],
            options={
                "db_table": "objects_event",
                "ordering": ("-id",),
                "indexes": [
                    models.Index(fields=["name", "at"], name="objects_event_name"),
                    models.Index(fields=["at"], name="objects_event_time"),
                    models.Index(fields=["received_at"], name="objects_event_age"),
                ],
            },
        ),
        migrations.CreateModel(
            name="KeptAnswer",
            fields=[
                ("key", models.TextField(db_collation="C", primary_key=True, serialize=False)),
                ("fingerprint", models.TextField()),
                ("answer", models.TextField(null=True)),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "db_table": "objects_kept_answer",
                "indexes": [models.Index(fields=["expires_at"], name="objects_kept_answer_expiry")],
            },
        ),
    ]
