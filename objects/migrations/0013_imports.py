"""How far imports have come, stored in the transactions of what they store."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("objects", "0012_object_size")]

    operations = [
        migrations.CreateModel(
            name="ImportProgress",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("rows", models.BigIntegerField()),
                ("stored", models.BigIntegerField()),
                ("refused", models.BigIntegerField()),
                ("updated_at", models.DateTimeField()),
            ],
            options={"verbose_name": "import", "db_table": "objects_import"},
        ),
    ]
