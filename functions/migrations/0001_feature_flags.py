"""Feature flags, and those that every deployment has."""

import django.core.validators
from django.db import migrations, models

FLAGS = {
    "newMarketplace": "The new marketplace",
    "carbonCredits": "Trading of carbon credits",
    "nftFractionalization": "Tokens that are owned in parts",
}


def make_flags(apps, schema_editor):
    flags = apps.get_model("functions", "FeatureFlag")
    for name, description in FLAGS.items():
        flags.objects.get_or_create(name=name, defaults={"description": description})


class Migration(migrations.Migration):
    initial = True
    dependencies = []

    operations = [
        migrations.CreateModel(
            name="FeatureFlag",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=64,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A[A-Za-z][A-Za-z0-9_]*\\Z", "Letters, digits and _ only."
                            )
                        ],
                    ),
                ),
                (
                    "on",
                    models.BooleanField(default=False, help_text="Off: nobody has the feature."),
                ),
                (
                    "rollout",
                    models.PositiveSmallIntegerField(
                        default=100,
                        help_text="While it is on: percentage of all users who have it,"
                        " besides beta testers.",
                        validators=[django.core.validators.MaxValueValidator(100)],
                    ),
                ),
                ("description", models.TextField(blank=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "db_table": "functions_feature_flag",
                "ordering": ("name",),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("rollout__lte", 100)),
                        name="functions_feature_flag_rollout",
                    )
                ],
            },
        ),
        migrations.RunPython(make_flags, migrations.RunPython.noop),
    ]
