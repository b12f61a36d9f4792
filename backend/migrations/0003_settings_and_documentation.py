"""The permissions to see settings and the documentation, and to make backups."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('backend', '0002_figures'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='backuprun',
            options={'default_permissions': ('view', 'add'), 'ordering': ('-id',), 'verbose_name': 'backup'},
        ),
        migrations.CreateModel(
            name='Setting',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ],
            options={
                'managed': False,
                'default_permissions': ('view',),
            },
        ),
        migrations.CreateModel(
            name='Documentation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ],
            options={
                'managed': False,
                'default_permissions': ('view',),
            },
        ),
    ]
