"""What a switch of a feature flag says."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('functions', '0008_failed_jobs'),
    ]

    operations = [
        migrations.AlterField(
            model_name='featureflag',
            name='on',
            field=models.BooleanField(default=False, help_text='Whether users have the feature: all, or the share below.'),
        ),
    ]
