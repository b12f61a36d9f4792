"""Checking what providers say: what was learned and found, and what is compared again."""

from django.db import migrations, models
from django.db.models.functions import Now


# What was sent for the setting over REST was stored beside the column, without effect.
CLEAR = "UPDATE chain_blockchain SET data = data - 'verify' WHERE data ? 'verify'"


class Migration(migrations.Migration):

    dependencies = [
        ('chain', '0006_polled_at'),
    ]

    operations = [
        migrations.AddField(
            model_name='blockchain',
            name='verify',
            field=models.CharField(choices=[('sample', 'a sample of blocks'), ('all', 'every block')], db_collation='C', db_default='sample', default='sample', max_length=10),
        ),
        migrations.AddField(
            model_name='cursor',
            name='audited_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='cursor',
            name='audited_before',
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='cursor',
            name='contradicted_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='cursor',
            name='contradiction',
            field=models.TextField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='cursor',
            name='contradictions',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='cursor',
            name='hashes_until',
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='cursor',
            name='mended',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='cursor',
            name='proves_hashes',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='cursor',
            name='proves_receipts',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.CreateModel(
            name='Recheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('network_id', models.BigIntegerField()),
                ('kind', models.CharField(max_length=10)),
                ('next_block', models.BigIntegerField()),
                ('last_block', models.BigIntegerField()),
                ('made_at', models.DateTimeField(db_default=Now())),
            ],
            options={
                'db_table': 'chain_recheck',
                'constraints': [models.UniqueConstraint(fields=('network_id', 'kind'), name='chain_recheck_kind')],
            },
        ),
        migrations.RunSQL(CLEAR, migrations.RunSQL.noop),
    ]
