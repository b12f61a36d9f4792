"""Passkeys, and what authenticators were asked to sign."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("objects", "0006_maintenance")]

    operations = [
        migrations.CreateModel(
            name="Passkey",
            fields=[
                (
                    "credential_id",
                    models.TextField(db_collation="C", primary_key=True, serialize=False),
                ),
                ("public_key", models.BinaryField()),
                ("sign_count", models.BigIntegerField()),
                ("name", models.TextField()),
                ("aaguid", models.TextField()),
                ("attestation", models.TextField()),
                ("transports", models.JSONField(default=list)),
                ("backed_up", models.BooleanField()),
                ("created_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="passkeys",
                        to="objects.user",
                    ),
                ),
            ],
            options={"db_table": "objects_passkey"},
        ),
        migrations.CreateModel(
            name="PasskeyChallenge",
            fields=[
                ("token_hash", models.BinaryField(primary_key=True, serialize=False)),
                ("purpose", models.TextField()),
                ("challenge", models.BinaryField()),
                ("username", models.TextField(null=True)),
                ("invitation", models.TextField(null=True)),
                ("user_id", models.TextField(db_collation="C", null=True)),
                ("address", models.TextField()),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "db_table": "objects_passkey_challenge",
                "indexes": [
                    models.Index(fields=["address"], name="objects_passkey_ch_address"),
                    models.Index(fields=["expires_at"], name="objects_passkey_ch_expiry"),
                ],
            },
        ),
    ]
