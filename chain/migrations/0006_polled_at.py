"""When a network was last polled, beside when it is polled next."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chain", "0005_halt_checked_at")]

    operations = [migrations.AddField("cursor", "polled_at", models.DateTimeField(null=True, blank=True))]
