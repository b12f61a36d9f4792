"""Files."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("objects", "0002_people")]

    operations = [
        migrations.CreateModel(
            name="StoredFile",
            fields=[
                ("name", models.TextField(db_collation="C", primary_key=True, serialize=False)),
                ("size", models.BigIntegerField()),
                ("content_type", models.TextField()),
                ("sha256", models.TextField()),
                ("metadata", models.JSONField(default=dict)),
                ("tags", models.JSONField(default=dict)),
                ("owner_id", models.TextField(db_collation="C", null=True)),
                (
                    "read_acl",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, null=True, size=None
                    ),
                ),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "verbose_name": "file",
                "db_table": "objects_file",
                "ordering": ("-created_at",),
                "indexes": [models.Index(fields=["created_at", "name"], name="objects_file_age")],
            },
        ),
    ]
