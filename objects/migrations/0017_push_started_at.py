from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("objects", "0016_push"),
    ]

    operations = [
        migrations.AddField(
            model_name="push",
            name="started_at",
            field=models.DateTimeField(null=True),
        ),
    ]
