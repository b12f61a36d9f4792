"""Wallets are found by their addresses."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chain', '0012_token_transfer'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='wallet',
            index=models.Index(fields=['address'], name='chain_wallet_address'),
        ),
    ]
