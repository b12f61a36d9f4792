"""The tables of people.

``User``, ``Session``, ``Role`` and ``Installation`` are classes (``_User`` and so on). The others
are the service's own: nothing of them is ever part of an object.
"""

from __future__ import annotations

from django.db import models

from objects.database.fresh_rows import ANY_NUMBER
from objects.definitions.columns import text_column
from objects.definitions.models import ModelBackedObject


class User(ModelBackedObject):
    """``_User``. ``auth_data`` says who the user is at each provider: ``{"google": {"id": …}}``.

    The keys are the names without their differences of case and of writing
    (``kernel.spelling.name_key``).
    """

    username = text_column()
    email = text_column()
    email_verified = models.BooleanField(null=True, blank=True)
    auth_data = models.JSONField(null=True, blank=True)
    username_key = text_column()
    email_key = text_column()

    class Meta:
        db_table = "objects_user"
        constraints = (
            models.UniqueConstraint(fields=("username_key",), name="objects_user_username_unique"),
            models.UniqueConstraint(fields=("email_key",), name="objects_user_email_unique"),
        )

    def __str__(self) -> str:
        return self.username or self.object_id


class Session(ModelBackedObject):
    """``_Session``. The token itself is known to its bearer alone; here is its hash."""

    user = text_column()
    installation_id = text_column()
    expires_at = models.DateTimeField(null=True, blank=True)
    created_with = models.JSONField(null=True, blank=True)
    token_hash = models.BinaryField(null=True, unique=True)

    class Meta:
        db_table = "objects_session"
        indexes = (
            models.Index(fields=("user",), name="objects_session_user"),
            models.Index(fields=("expires_at",), name="objects_session_expiry"),
        )

    def __str__(self) -> str:
        return self.object_id


class Role(ModelBackedObject):
    """``_Role``. Members and inherited roles are relations."""

    name = text_column()

    class Meta:
        db_table = "objects_role"
        constraints = (models.UniqueConstraint(fields=("name",), name="objects_role_name_unique"),)

    def __str__(self) -> str:
        return self.name or self.object_id


class RoleVersion(models.Model):
    """One row at most. Its number is new with every change of a role, in the same transaction."""

    fresh_rows = ANY_NUMBER

    id = models.SmallIntegerField(primary_key=True)
    version = models.BigIntegerField()

    class Meta:
        db_table = "objects_role_version"


class Installation(ModelBackedObject):
    """``_Installation``: an app on a device."""

    installation_id = text_column()
    device_token = text_column()
    device_type = text_column()
    channels = models.JSONField(null=True, blank=True)

    class Meta:
        db_table = "objects_installation"
        constraints = (
            models.UniqueConstraint(
                fields=("installation_id",), name="objects_installation_id_unique"
            ),
        )
        indexes = (models.Index(fields=("device_token",), name="objects_installation_token"),)

    def __str__(self) -> str:
        return self.installation_id or self.object_id


def _owner(**options: object) -> models.ForeignKey:
    return models.ForeignKey(User, models.CASCADE, **options)  # type: ignore[arg-type]


class Password(models.Model):
    """A user's password as Django's hashers encode it, and when it was set."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True)
    encoded = models.TextField()
    changed_at = models.DateTimeField()

    class Meta:
        db_table = "objects_password"


class FormerPassword(models.Model):
    """A password that a user had before, for the policy that forbids to take it again."""

    user = _owner(related_name="former_passwords")
    encoded = models.TextField()
    replaced_at = models.DateTimeField()

    class Meta:
        db_table = "objects_former_password"


class FailedLogins(models.Model):
    """Guesses at a user's password since the last right one. No row: none."""

    fresh_rows = ANY_NUMBER

    user = models.OneToOneField(User, models.CASCADE, primary_key=True)
    count = models.IntegerField()
    locked_until = models.DateTimeField(null=True)

    class Meta:
        db_table = "objects_failed_logins"


class MailToken(models.Model):
    """A token that was mailed to a user, by its hash. Using it deletes the row.

    ``email`` is the address that it was sent to: it proves nothing about another one.
    """

    class Purpose(models.TextChoices):
        VERIFY_EMAIL = "verify"
        RESET_PASSWORD = "reset"

    token_hash = models.BinaryField(primary_key=True)
    user = _owner(related_name="mail_tokens")
    purpose = models.TextField(choices=Purpose)
    email = models.TextField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "objects_mail_token"
        indexes = (models.Index(fields=("user", "purpose"), name="objects_mail_token_user"),)


class Identity(models.Model):
    """An identity at a provider (``authData.PROVIDER.id``), and the one user that it belongs to."""

    pk = models.CompositePrimaryKey("provider", "external_id")
    provider = models.TextField(db_collation="C")
    external_id = models.TextField(db_collation="C")
    user = _owner(related_name="identities")

    class Meta:
        db_table = "objects_identity"
        constraints = (
            models.UniqueConstraint(
                fields=("user", "provider"), name="objects_identity_of_user_unique"
            ),
        )


class SecondFactorColumns(models.Model):
    """A one-time password generator. ``secret`` is encrypted; ``last_step`` was used."""

    secret = models.TextField()
    last_step = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()

    class Meta:
        abstract = True


class SecondFactor(SecondFactorColumns):
    """A user's one-time password generator."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True)

    class Meta:
        db_table = "objects_second_factor"


class RecoveryCode(models.Model):
    """A code that stands in for the second factor once, by its hash. Using it deletes the row."""

    user = _owner(related_name="recovery_codes")
    code_hash = models.BinaryField()

    class Meta:
        db_table = "objects_recovery_code"
        constraints = (
            models.UniqueConstraint(
                fields=("user", "code_hash"), name="objects_recovery_code_unique"
            ),
        )
