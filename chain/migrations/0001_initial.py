"""The chain's records, what is known of networks, and what the service signs."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.migrations.operations.base import Operation

_HEIGHT = models.OrderBy(models.F('block_number'), nulls_first=True)
_TIME = models.OrderBy(models.F('timestamp'), nulls_first=True)


class WithoutPatternIndexes(Operation):
    """Leave out the second index that Django gives to unique texts, for LIKE in locales other than
    C: these columns have the collation C, and a third of the time of storing an event went there.
    """

    reduces_to_sql = False
    reversible = True

    def state_forwards(self, app_label, state):
        pass

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        kept = [one for one in schema_editor.deferred_sql if "text_pattern_ops" not in str(one)]
        schema_editor.deferred_sql[:] = kept

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        pass

    def describe(self):
        return "Leave out indexes for LIKE in other locales"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Blockchain',
            fields=[
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('read_acl', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, null=True, size=None)),
                ('write_acl', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, null=True, size=None)),
                ('data', models.JSONField(default=dict)),
                ('object_id', models.TextField(db_collation='C', primary_key=True, serialize=False)),
                ('network_id', models.BigIntegerField(blank=True, null=True, unique=True)),
                ('name', models.TextField(blank=True, db_collation='C', null=True)),
                ('symbol', models.TextField(blank=True, db_collation='C', null=True)),
                ('rpc_endpoint', models.TextField(blank=True, db_collation='C', null=True)),
                ('wss_endpoint', models.TextField(blank=True, db_collation='C', null=True)),
                ('code', models.TextField(blank=True, db_collation='C', null=True)),
                ('explorer', models.TextField(blank=True, db_collation='C', null=True)),
                ('active', models.BooleanField(db_default=True, default=True)),
                ('confirmations', models.IntegerField(db_default=0, default=0)),
                ('poll_interval', models.IntegerField(db_default=2000, default=2000)),
                ('finality_depth', models.IntegerField(blank=True, null=True)),
            ],
            options={
                'db_table': 'chain_blockchain',
                'ordering': ('network_id',),
            },
        ),
        migrations.CreateModel(
            name='Cursor',
            fields=[
                ('network_id', models.BigIntegerField(primary_key=True, serialize=False)),
                ('number', models.BigIntegerField(blank=True, null=True)),
                ('hash', models.TextField(blank=True, db_collation='C', null=True)),
                ('began_at', models.BigIntegerField(blank=True, null=True)),
                ('outbox', models.BigIntegerField(db_default=0, default=0)),
                ('contracts', models.BigIntegerField(db_default=0, default=0)),
                ('planned', models.BigIntegerField(db_default=0, default=0)),
                ('audited', models.BigIntegerField(blank=True, null=True)),
                ('audit', models.JSONField(blank=True, null=True)),
                ('next_poll_at', models.DateTimeField(blank=True, null=True)),
                ('head', models.BigIntegerField(blank=True, null=True)),
                ('safe', models.BigIntegerField(blank=True, null=True)),
                ('finalized', models.BigIntegerField(blank=True, null=True)),
                ('looked_at', models.DateTimeField(blank=True, null=True)),
                ('moved_at', models.DateTimeField(blank=True, null=True)),
                ('trouble', models.TextField(blank=True, null=True)),
                ('halted', models.TextField(blank=True, null=True)),
            ],
            options={
                'db_table': 'chain_cursor',
            },
        ),
        migrations.CreateModel(
            name='Identity',
            fields=[
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('read_acl', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, null=True, size=None)),
                ('write_acl', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, null=True, size=None)),
                ('data', models.JSONField(default=dict)),
                ('object_id', models.TextField(db_collation='C', primary_key=True, serialize=False)),
                ('wallet_address', models.TextField(blank=True, db_collation='C', null=True, unique=True)),
                ('user', models.TextField(blank=True, db_collation='C', null=True)),
            ],
            options={
                'verbose_name_plural': 'identities',
                'db_table': 'chain_identity',
            },
        ),
        migrations.CreateModel(
            name='Reorganisation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('network_id', models.BigIntegerField()),
                ('fork_number', models.BigIntegerField()),
                ('fork_hash', models.TextField(db_collation='C')),
                ('old_number', models.BigIntegerField()),
                ('old_hash', models.TextField(db_collation='C')),
                ('depth', models.IntegerField()),
                ('removed_events', models.IntegerField()),
                ('transactions', models.IntegerField(default=0)),
                ('seen_at', models.DateTimeField()),
            ],
            options={
                'db_table': 'chain_reorganisation',
                'ordering': ('-seen_at',),
            },
        ),
        migrations.CreateModel(
            name='Backfill',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('network_id', models.BigIntegerField()),
                ('address', models.TextField(db_collation='C')),
                ('first_block', models.BigIntegerField()),
                ('last_block', models.BigIntegerField()),
                ('next_block', models.BigIntegerField()),
                ('seeking', models.BooleanField(db_default=False, default=False)),
                ('asked', models.BooleanField(db_default=False, default=False)),
                ('step', models.IntegerField(db_default=0, default=0)),
                ('events', models.BigIntegerField(db_default=0, default=0)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('done_at', models.DateTimeField(blank=True, null=True)),
                ('trouble', models.TextField(blank=True, null=True)),
                ('failures', models.PositiveIntegerField(db_default=0, default=0)),
                ('paused_until', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'db_table': 'chain_backfill',
                'ordering': ('-created_at',),
                'indexes': [models.Index(condition=models.Q(('done_at__isnull', True)), fields=['network_id', 'next_block'], name='chain_backfill_open')],
            },
        ),
        migrations.CreateModel(
            name='Coverage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('network_id', models.BigIntegerField()),
                ('address', models.TextField(db_collation='C')),
                ('spans', models.JSONField(default=list)),
                ('followed_from', models.BigIntegerField(blank=True, null=True)),
            ],
            options={
                'db_table': 'chain_coverage',
                'constraints': [models.UniqueConstraint(fields=('network_id', 'address'), name='chain_coverage_place')],
            },
        ),
        migrations.CreateModel(
            name='Block',
            fields=[
                ('pk', models.CompositePrimaryKey('network_id', 'hash', blank=True, editable=False, primary_key=True, serialize=False)),
                ('network_id', models.BigIntegerField()),
                ('hash', models.TextField(db_collation='C')),
                ('number', models.BigIntegerField()),
                ('parent_hash', models.TextField(db_collation='C')),
                ('timestamp', models.BigIntegerField()),
                ('canonical', models.BooleanField(default=True)),
            ],
            options={
                'db_table': 'chain_block',
                'constraints': [models.UniqueConstraint(condition=models.Q(('canonical', True)), fields=('network_id', 'number'), name='chain_block_canonical')],
            },
        ),
        migrations.CreateModel(
            name='ContractEvent',
            fields=[
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('read_acl', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, null=True, size=None)),
                ('write_acl', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, null=True, size=None)),
                ('data', models.JSONField(default=dict)),
                ('object_id', models.TextField(db_collation='C', primary_key=True, serialize=False)),
                ('network_id', models.TextField(blank=True, db_collation='C', null=True)),
                ('contract_name', models.TextField(blank=True, db_collation='C', null=True)),
                ('event_name', models.TextField(blank=True, db_collation='C', null=True)),
                ('address', models.TextField(blank=True, db_collation='C', null=True)),
                ('transaction_hash', models.TextField(blank=True, db_collation='C', null=True)),
                ('block_number', models.BigIntegerField(blank=True, null=True)),
                ('block_hash', models.TextField(blank=True, db_collation='C', null=True)),
                ('log_index', models.BigIntegerField(blank=True, null=True)),
                ('transaction_index', models.BigIntegerField(blank=True, null=True)),
                ('ordinal', models.BigIntegerField(blank=True, null=True)),
                ('args', models.JSONField(blank=True, null=True)),
                ('timestamp', models.DateTimeField(blank=True, null=True)),
                ('canonical', models.BooleanField(db_default=True, default=True)),
            ],
            options={
                'db_table': 'chain_contract_event',
                'ordering': ('network_id', 'block_number', 'log_index'),
                'indexes': [models.Index(fields=['created_at'], name='chain_contract_event_age'), models.Index(_TIME, name='chain_contract_event_time'), models.Index(_HEIGHT, name='chain_contract_event_height'), models.Index(models.F('contract_name'), _HEIGHT, name='chain_contract_event_contract'), models.Index(models.F('event_name'), _HEIGHT, name='chain_contract_event_name'), models.Index(models.F('address'), _HEIGHT, name='chain_contract_event_address'), django.contrib.postgres.indexes.HashIndex(fields=['transaction_hash'], name='chain_contract_event_sent'), models.Index(condition=models.Q(('canonical', False)), fields=['network_id', 'block_number'], name='chain_contract_event_removed')],
                'constraints': [models.UniqueConstraint(models.F('network_id'), _HEIGHT, models.F('log_index'), models.F('block_hash'), name='chain_contract_event_identity')],
            },
        ),
        migrations.CreateModel(
            name='OutboxEntry',
            fields=[
                ('pk', models.CompositePrimaryKey('network_id', 'seq', blank=True, editable=False, primary_key=True, serialize=False)),
                ('network_id', models.BigIntegerField()),
                ('seq', models.BigIntegerField()),
                ('op', models.CharField(max_length=8)),
                ('event_id', models.TextField(db_collation='C')),
                ('place', models.UUIDField(null=True)),
                ('payload', models.TextField()),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'db_table': 'chain_outbox',
                'indexes': [models.Index(fields=['created_at'], name='chain_outbox_age'), django.contrib.postgres.indexes.HashIndex(fields=['place'], name='chain_outbox_place')],
            },
        ),
        migrations.CreateModel(
            name='OutboxEpoch',
            fields=[
                ('value', models.UUIDField(primary_key=True, serialize=False)),
            ],
            options={
                'db_table': 'chain_outbox_epoch',
            },
        ),
        migrations.RunSQL(
            "INSERT INTO chain_outbox_epoch (value) VALUES (gen_random_uuid())",
            migrations.RunSQL.noop,
        ),
        migrations.CreateModel(
            name='Provider',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('network_id', models.BigIntegerField()),
                ('name', models.CharField(max_length=64)),
                ('url', models.TextField()),
                ('socket_url', models.TextField(blank=True, null=True)),
                ('weight', models.PositiveSmallIntegerField(default=10)),
                ('requests_per_second', models.PositiveIntegerField(blank=True, null=True)),
                ('batch_size', models.PositiveIntegerField(blank=True, null=True)),
                ('largest_range', models.PositiveIntegerField(blank=True, null=True)),
                ('active', models.BooleanField(default=True)),
                ('checked_at', models.DateTimeField(blank=True, null=True)),
                ('head', models.BigIntegerField(blank=True, null=True)),
                ('latency', models.FloatField(blank=True, null=True)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('paused_until', models.DateTimeField(blank=True, null=True)),
                ('trouble', models.TextField(blank=True, null=True)),
            ],
            options={
                'db_table': 'chain_provider',
                'ordering': ('network_id', '-weight', 'id'),
                'constraints': [models.UniqueConstraint(fields=('network_id', 'name'), name='chain_provider_name')],
            },
        ),
        migrations.CreateModel(
            name='Sending',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('network_id', models.BigIntegerField()),
                ('account', models.TextField(db_collation='C')),
                ('nonce', models.BigIntegerField()),
                ('hash', models.TextField(db_collation='C', unique=True)),
                ('raw', models.TextField()),
                ('to', models.TextField(blank=True, db_collation='C', null=True)),
                ('value', models.TextField(default='0')),
                ('data', models.TextField(default='0x')),
                ('gas', models.BigIntegerField()),
                ('max_fee', models.TextField()),
                ('priority_fee', models.TextField(blank=True, null=True)),
                ('purpose', models.TextField(blank=True, default='')),
                ('state', models.TextField(default='signed')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('sent_at', models.DateTimeField(blank=True, null=True)),
                ('block_number', models.BigIntegerField(blank=True, null=True)),
                ('mined_at', models.DateTimeField(blank=True, null=True)),
                ('passed_at', models.DateTimeField(blank=True, null=True)),
                ('trouble', models.TextField(blank=True, null=True)),
            ],
            options={
                'db_table': 'chain_sending',
                'ordering': ('-created_at',),
                'indexes': [models.Index(fields=['network_id', 'account', 'nonce'], name='chain_sending_nonce'), models.Index(condition=models.Q(('state__in', ('signed', 'sent', 'mined'))), fields=['network_id', 'state'], name='chain_sending_open')],
            },
        ),
        migrations.CreateModel(
            name='SigningAccount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('network_id', models.BigIntegerField()),
                ('address', models.TextField(db_collation='C')),
                ('next_nonce', models.BigIntegerField(blank=True, null=True)),
            ],
            options={
                'db_table': 'chain_signing_account',
                'constraints': [models.UniqueConstraint(fields=('network_id', 'address'), name='chain_signing_account_address')],
            },
        ),
        migrations.CreateModel(
            name='SmartContract',
            fields=[
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('read_acl', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, null=True, size=None)),
                ('write_acl', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, null=True, size=None)),
                ('data', models.JSONField(default=dict)),
                ('object_id', models.TextField(db_collation='C', primary_key=True, serialize=False)),
                ('name', models.TextField(blank=True, db_collation='C', null=True)),
                ('address', models.TextField(blank=True, db_collation='C', null=True)),
                ('network_id', models.BigIntegerField(blank=True, null=True)),
                ('abi', models.JSONField(blank=True, null=True)),
                ('start_block', models.BigIntegerField(blank=True, null=True)),
                ('listening', models.BooleanField(blank=True, null=True)),
                ('view_roles', models.JSONField(blank=True, null=True)),
                ('call_roles', models.JSONField(blank=True, null=True)),
                ('kind', models.TextField(blank=True, db_collation='C', null=True)),
                ('behind', models.JSONField(blank=True, null=True)),
                ('behind_looked_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'db_table': 'chain_smart_contract',
                'ordering': ('network_id', 'name'),
                'constraints': [models.UniqueConstraint(fields=('network_id', 'address'), name='chain_contract_place')],
            },
        ),
        migrations.CreateModel(
            name='Transaction',
            fields=[
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('read_acl', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, null=True, size=None)),
                ('write_acl', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, null=True, size=None)),
                ('data', models.JSONField(default=dict)),
                ('object_id', models.TextField(db_collation='C', primary_key=True, serialize=False)),
                ('hash', models.TextField(blank=True, db_collation='C', null=True)),
                ('network_id', models.TextField(blank=True, db_collation='C', null=True)),
                ('status', models.TextField(blank=True, db_collation='C', null=True)),
                ('attempts', models.IntegerField(blank=True, null=True)),
                ('last_checked', models.DateTimeField(blank=True, null=True)),
                ('block_number', models.BigIntegerField(blank=True, null=True)),
                ('gas_used', models.TextField(blank=True, db_collation='C', null=True)),
                ('effective_gas_price', models.TextField(blank=True, db_collation='C', null=True)),
                ('block_hash', models.TextField(blank=True, db_collation='C', null=True)),
                ('transaction_index', models.BigIntegerField(blank=True, null=True)),
                ('from_address', models.TextField(blank=True, db_collation='C', null=True)),
                ('to', models.TextField(blank=True, db_collation='C', null=True)),
                ('nonce', models.BigIntegerField(blank=True, null=True)),
                ('finality', models.TextField(blank=True, db_collation='C', null=True)),
                ('reorg_count', models.IntegerField(blank=True, null=True)),
                ('pending_since', models.DateTimeField(blank=True, null=True)),
                ('replaced_by', models.TextField(blank=True, db_collation='C', null=True)),
                ('replaced_suspected', models.BooleanField(blank=True, null=True)),
                ('late_receipt', models.JSONField(blank=True, null=True)),
                ('next_check_at', models.DateTimeField(blank=True, null=True)),
                ('failed_checks', models.IntegerField(db_default=0, default=0)),
                ('missing_since', models.DateTimeField(blank=True, null=True)),
                ('missing_checks', models.IntegerField(db_default=0, default=0)),
            ],
            options={
                'db_table': 'chain_transaction',
                'ordering': ('-created_at',),
                'indexes': [models.Index(condition=models.Q(('next_check_at__isnull', False)), fields=['network_id', 'next_check_at'], name='chain_transaction_due'), models.Index(condition=models.Q(('finality__in', ('included', 'safe'))), fields=['network_id', 'block_number'], name='chain_transaction_unfinal'), models.Index(fields=['created_at', 'object_id'], name='chain_transaction_age')],
                'constraints': [models.UniqueConstraint(fields=('hash',), name='chain_transaction_hash'), models.CheckConstraint(condition=models.Q(('status__in', ('pending', 'confirmed', 'failed', 'stalled'))), name='chain_transaction_status')],
            },
        ),
        migrations.CreateModel(
            name='Wallet',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('wallet_id', models.TextField(db_collation='C', unique=True)),
                ('user_id', models.TextField(db_collation='C')),
                ('network', models.TextField()),
                ('address', models.TextField(db_collation='C')),
                ('custodian', models.TextField()),
                ('reference', models.TextField(blank=True, null=True)),
                ('key', models.TextField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'db_table': 'chain_wallet',
                'ordering': ('created_at', 'id'),
                'constraints': [models.UniqueConstraint(fields=('user_id', 'network', 'custodian'), name='chain_wallet_one_each')],
            },
        ),
        # What a reorganisation has removed is in the table and not in the class.
        migrations.RunSQL(
            "CREATE VIEW chain_contract_event_shown AS"
            " SELECT * FROM chain_contract_event WHERE canonical",
            "DROP VIEW chain_contract_event_shown",
        ),
        WithoutPatternIndexes(),
    ]
