"""Pushes under way and their targets."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('objects', '0015_index_orders'),
    ]

    operations = [
        migrations.CreateModel(
            name='Push',
            fields=[
                ('id', models.TextField(db_collation='C', primary_key=True, serialize=False)),
                ('request', models.TextField()),
                ('source', models.TextField()),
                ('state', models.TextField(choices=[('waiting', 'targets to be read'), ('sending', 'being sent'), ('ended', 'ended')], default='waiting')),
                ('push_at', models.DateTimeField()),
                ('is_local', models.BooleanField(default=False)),
                ('wave', models.IntegerField(null=True)),
                ('cursor', models.TextField(db_collation='C', default='')),
                ('due_at', models.DateTimeField()),
                ('pages', models.IntegerField(default=0)),
                ('planned', models.BigIntegerField(default=0)),
                ('sent', models.BigIntegerField(default=0)),
                ('failed', models.BigIntegerField(default=0)),
                ('totals', models.JSONField(default=dict)),
                ('error', models.TextField(blank=True, default='')),
                ('is_published', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name': 'push',
                'verbose_name_plural': 'pushes',
                'db_table': 'objects_push',
                'ordering': ('-created_at',),
                'indexes': [models.Index(condition=models.Q(models.Q(('state', 'ended'), _negated=True), ('is_published', False), _connector='OR'), fields=['due_at'], name='objects_push_open'), models.Index(fields=['created_at'], name='objects_push_age')],
            },
        ),
        migrations.CreateModel(
            name='PushTarget',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('installation', models.TextField(db_collation='C')),
                ('device_token', models.TextField()),
                ('device_type', models.TextField()),
                ('push_type', models.TextField()),
                ('app_identifier', models.TextField(default='')),
                ('locale', models.TextField(default='')),
                ('badge', models.FloatField(null=True)),
                ('utc_offset', models.IntegerField(null=True)),
                ('expires_at', models.DateTimeField(null=True)),
                ('state', models.TextField(choices=[('pending', 'to be sent'), ('sent', 'sent'), ('failed', 'failed'), ('gone', "failed: the token isn't valid any more")], default='pending')),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('due_at', models.DateTimeField()),
                ('error', models.TextField(blank=True, default='')),
                ('push', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='targets', to='objects.push')),
            ],
            options={
                'verbose_name': 'target of a push',
                'verbose_name_plural': 'targets of pushes',
                'db_table': 'objects_push_target',
                'ordering': ('id',),
                'indexes': [models.Index(condition=models.Q(('state', 'pending')), fields=['push', 'due_at'], name='objects_push_target_due')],
                'constraints': [models.UniqueConstraint(fields=('push', 'installation'), name='objects_push_target_once')],
            },
        ),
    ]
