"""Classes that staff users have put at the beginning of their sidebar."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('objects', '0023_console'),
    ]

    operations = [
        migrations.CreateModel(
            name='FavouriteClass',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('class_name', models.CharField(max_length=128)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table': 'objects_staff_favourite_class',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('user', 'class_name'), name='objects_staff_favourite_class_once')],
            },
        ),
    ]
