"""The settings of networks are fields of the class ``Blockchain``.

What was sent for them over REST was stored beside the columns, in ``data``, without effect. It is
removed: a promoted field is never in ``data``.
"""

import django.core.validators
from django.db import migrations, models

AT_LEAST_0 = [django.core.validators.MinValueValidator(0)]
AT_LEAST_1 = [django.core.validators.MinValueValidator(1)]
CLEAR = (
    "UPDATE chain_blockchain"
    " SET data = data - '{active,confirmations,pollInterval,finalityDepth}'::text[]"
    " WHERE data ?| '{active,confirmations,pollInterval,finalityDepth}'::text[]"
)


class Migration(migrations.Migration):
    dependencies = [("chain", "0002_object_size")]

    operations = [
        migrations.AlterField(
            "blockchain",
            "confirmations",
            models.IntegerField(db_default=0, default=0, validators=AT_LEAST_0),
        ),
        migrations.AlterField(
            "blockchain",
            "poll_interval",
            models.IntegerField(db_default=2000, default=2000, validators=AT_LEAST_1),
        ),
        migrations.AlterField(
            "blockchain",
            "finality_depth",
            models.IntegerField(blank=True, null=True, validators=AT_LEAST_0),
        ),
        migrations.RunSQL(CLEAR, migrations.RunSQL.noop),
    ]
