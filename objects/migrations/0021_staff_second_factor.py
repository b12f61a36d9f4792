"""The second factors of staff: authenticator apps, passkeys and recovery codes."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('objects', '0020_hold'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='StaffSecondFactor',
            fields=[
                ('secret', models.TextField()),
                ('last_step', models.BigIntegerField(default=0)),
                ('created_at', models.DateTimeField()),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table': 'objects_staff_second_factor',
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='StaffPasskey',
            fields=[
                ('credential_id', models.TextField(db_collation='C', primary_key=True, serialize=False)),
                ('public_key', models.BinaryField()),
                ('sign_count', models.BigIntegerField()),
                ('name', models.TextField()),
                ('aaguid', models.TextField()),
                ('attestation', models.TextField()),
                ('transports', models.JSONField(default=list)),
                ('backed_up', models.BooleanField()),
                ('created_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table': 'objects_staff_passkey',
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='StaffRecoveryCode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('code_hash', models.BinaryField()),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table': 'objects_staff_recovery_code',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('user', 'code_hash'), name='objects_staff_recovery_code_unique')],
            },
        ),
    ]
