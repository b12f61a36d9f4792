"""The tables of passkeys."""

from __future__ import annotations

from django.db import models

from objects.database.fresh_rows import ANY_NUMBER
from objects.users.models import User


class PasskeyColumns(models.Model):
    """A key of an authenticator. ``credential_id`` is in base64url, and unique.

    ``sign_count`` is the last one that the authenticator has told; those that don't count say 0.
    """

    credential_id = models.TextField(primary_key=True, db_collation="C")
    public_key = models.BinaryField()
    sign_count = models.BigIntegerField()
    name = models.TextField()
    aaguid = models.TextField()  # the model of the authenticator, if it tells
    attestation = models.TextField()  # the format: none, packed, …
    transports = models.JSONField(default=list)
    backed_up = models.BooleanField()
    created_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True


class Passkey(PasskeyColumns):
    """A passkey of a user."""

    user = models.ForeignKey(User, models.CASCADE, related_name="passkeys")

    class Meta:
        db_table = "objects_passkey"


class PasskeyChallenge(models.Model):
    """What an authenticator was asked to sign, by the hash of the token that goes with it.

    Using it deletes the row. ``user_id`` is the user's whose passkey is added or asked for, or the
    id that a new user will have; null where any passkey may sign in.
    """

    fresh_rows = ANY_NUMBER

    token_hash = models.BinaryField(primary_key=True)
    purpose = models.TextField()  # ``challenges.Purpose``
    challenge = models.BinaryField()
    username = models.TextField(null=True)
    invitation = models.TextField(null=True)  # of a custodian of wallets, encrypted
    user_id = models.TextField(null=True, db_collation="C")
    address = models.TextField()
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "objects_passkey_challenge"
        indexes = (
            models.Index(fields=("address",), name="objects_passkey_ch_address"),
            models.Index(fields=("expires_at",), name="objects_passkey_ch_expiry"),
        )
