"""Whether a restored instance is held back from the outside.

A restore makes the table as well: an archive of an earlier release doesn't have it, and the hold
has to be on before anything reads what was restored.
"""

from django.db import migrations, models

CREATE = """
CREATE TABLE IF NOT EXISTS objects_hold
    (id smallint NOT NULL PRIMARY KEY, since timestamp with time zone NOT NULL)
"""


class Migration(migrations.Migration):
    dependencies = [("objects", "0019_channels_size")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(CREATE, "DROP TABLE objects_hold")],
            state_operations=[
                migrations.CreateModel(
                    name="Hold",
                    fields=[
                        ("id", models.SmallIntegerField(primary_key=True, serialize=False)),
                        ("since", models.DateTimeField()),
                    ],
                    options={
                        "verbose_name": "hold",
                        "verbose_name_plural": "hold",
                        "db_table": "objects_hold",
                    },
                )
            ],
        )
    ]
