"""What staff have run in the console."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('objects', '0022_bounded_index'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ConsoleEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=20)),
                ('fields', models.JSONField()),
                ('status', models.SmallIntegerField()),
                ('ms', models.FloatField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table': 'objects_console_entry',
                'permissions': (('use_console', 'Can use the console'),),
                'default_permissions': (),
                'indexes': [models.Index(fields=['user', '-id'], name='objects_console_entry_latest')],
            },
        ),
    ]
