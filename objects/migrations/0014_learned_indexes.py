"""What queries cost, by their shape, and the indexes that are built because of it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("objects", "0013_imports"),
    ]

    operations = [
        migrations.CreateModel(
            name="LearnedIndex",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("class_id", models.BigIntegerField()),
                ("name", models.CharField(max_length=63, unique=True)),
                ("fields", models.JSONField()),
                ("state", models.CharField(max_length=16)),
                ("shape", models.TextField()),
                ("reason", models.TextField(default="")),
                ("attempts", models.IntegerField(default=0)),
                ("retry_at", models.DateTimeField(null=True)),
                ("started_at", models.DateTimeField()),
                ("version", models.BigIntegerField(default=0)),
                ("before_calls", models.BigIntegerField(default=0)),
                ("before_seconds", models.FloatField(default=0)),
                ("built_at", models.DateTimeField(null=True)),
                ("build_seconds", models.FloatField(null=True)),
                ("scans", models.BigIntegerField(default=0)),
                ("used_at", models.DateTimeField(null=True)),
                ("checked_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "objects_learned_index",
                "indexes": [models.Index(fields=["class_id"], name="objects_learned_class")],
            },
        ),
        migrations.CreateModel(
            name="QueryShape",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("class_id", models.BigIntegerField()),
                ("digest", models.CharField(max_length=32)),
                ("shape", models.TextField()),
                ("version", models.BigIntegerField()),
                ("calls", models.BigIntegerField(default=0)),
                ("seconds", models.FloatField(default=0)),
                ("results", models.BigIntegerField(default=0)),
                ("before_calls", models.BigIntegerField(default=0)),
                ("before_seconds", models.FloatField(default=0)),
                ("window_start", models.DateTimeField()),
                ("window_calls", models.BigIntegerField(default=0)),
                ("window_seconds", models.FloatField(default=0)),
                ("window_results", models.BigIntegerField(default=0)),
                ("slow_calls", models.BigIntegerField(default=0)),
                ("slow_seconds", models.FloatField(default=0)),
                ("slow_at", models.DateTimeField(null=True)),
                ("last_at", models.DateTimeField()),
            ],
            options={
                "db_table": "objects_query_shape",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("class_id", "digest"), name="objects_query_shape_key"
                    )
                ],
            },
        ),
    ]
