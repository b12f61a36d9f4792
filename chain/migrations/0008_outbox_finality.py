"""How final an event was when it was removed. Rows that are there have none: nothing is rewritten."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chain", "0007_verification")]

    operations = [
        migrations.AddField("outboxentry", "finality", models.CharField(max_length=8, null=True))
    ]
