from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("objects", "0017_push_started_at"),
    ]

    operations = [
        migrations.AddField(
            model_name="push",
            name="publish_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="push",
            name="publish_failures",
            field=models.PositiveSmallIntegerField(default=0),
        ),
    ]
