"""The time of the block of an event, and the view with it.

Nothing is written into the table's rows: events of before have no such time until ``chain_reindex``
reads their blocks again.
"""

from django.db import migrations, models

VIEW = (
    "CREATE VIEW chain_contract_event_shown AS SELECT * FROM chain_contract_event WHERE canonical"
)
DROP = "DROP VIEW chain_contract_event_shown"


class Migration(migrations.Migration):
    dependencies = [("chain", "0003_network_settings")]

    operations = [
        migrations.RunSQL(DROP, VIEW),
        migrations.AddField("contractevent", "block_timestamp", models.DateTimeField(null=True, blank=True)),
        migrations.RunSQL(VIEW, DROP),
    ]
