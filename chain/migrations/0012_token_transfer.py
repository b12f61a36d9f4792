"""Whether an event is the transfer of a token, and the view with it.

Nothing is written into the table's rows: those of before have null.
"""

from django.db import migrations, models

VIEW = (
    "CREATE VIEW chain_contract_event_shown AS SELECT * FROM chain_contract_event WHERE canonical"
)
DROP = "DROP VIEW chain_contract_event_shown"


class Migration(migrations.Migration):
    dependencies = [("chain", "0011_backfill_unavailable")]

    operations = [
        migrations.RunSQL(DROP, VIEW),
        migrations.AddField(
            "contractevent", "token_transfer", models.BooleanField(null=True, blank=True)
        ),
        migrations.RunSQL(VIEW, DROP),
    ]
