"""Classes, the partitioned table of generic objects, and the members of relations."""

import django.contrib.postgres.fields
from django.db import migrations, models

OBJECTS = """
CREATE TABLE objects_object (
    class_id bigint NOT NULL,
    object_id text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    read_acl text[],
    write_acl text[],
    data jsonb NOT NULL
) PARTITION BY LIST (class_id);
CREATE SEQUENCE objects_class_version;
"""

# Ids are compared by code point everywhere: in paging, in joins and in memory.
RELATIONS = """
ALTER TABLE objects_relation
    ALTER COLUMN key TYPE text COLLATE "C",
    ALTER COLUMN owning_id TYPE text COLLATE "C",
    ALTER COLUMN related_id TYPE text COLLATE "C";
"""


class Migration(migrations.Migration):
    initial = True
    dependencies = []

    operations = [
        migrations.CreateModel(
            name="ObjectClass",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=128, unique=True)),
                ("definition", models.JSONField(default=dict)),
                ("version", models.BigIntegerField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "verbose_name": "class",
                "verbose_name_plural": "classes",
                "db_table": "objects_class",
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="RelationMember",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "class_id",
                        "key",
                        "owning_id",
                        "related_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("class_id", models.BigIntegerField()),
                ("key", models.TextField()),
                ("owning_id", models.TextField()),
                ("related_id", models.TextField()),
            ],
            options={
                "db_table": "objects_relation",
                "indexes": [
                    models.Index(
                        fields=["class_id", "key", "related_id"], name="objects_relation_related"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="StoredObject",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "object_class_id",
                        "object_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
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
                ("object_id", models.TextField()),
                (
                    "object_class",
                    models.ForeignKey(
                        db_column="class_id",
                        db_constraint=False,
                        db_index=False,
                        on_delete=models.deletion.DO_NOTHING,
                        to="objects.objectclass",
                    ),
                ),
            ],
            options={"verbose_name": "object", "db_table": "objects_object", "managed": False},
        ),
        migrations.RunSQL(
            OBJECTS, "DROP TABLE objects_object; DROP SEQUENCE objects_class_version;"
        ),
        migrations.RunSQL(RELATIONS, migrations.RunSQL.noop),
    ]
