"""Tables about staff users, who are Django's: second factors, the console, and grids."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from objects.users.models import SecondFactorColumns
from objects.users.passkeys.models import PasskeyColumns


class StaffSecondFactor(SecondFactorColumns):
    """A staff user's one-time password generator."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="+"
    )

    class Meta:
        db_table = "objects_staff_second_factor"
        default_permissions = ()


class StaffPasskey(PasskeyColumns):
    """A passkey that a staff user logs in with, after the password."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")

    class Meta:
        db_table = "objects_staff_passkey"
        default_permissions = ()


class StaffRecoveryCode(models.Model):
    """A code that stands in for the second factor once, by its hash. Using it deletes the row."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    code_hash = models.BinaryField()

    class Meta:
        db_table = "objects_staff_recovery_code"
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(
                fields=("user", "code_hash"), name="objects_staff_recovery_code_unique"
            ),
        )


class ConsoleEntry(models.Model):
    """What a staff user has run in the console, without its secrets. The latest of each stay."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    kind = models.CharField(max_length=20)
    fields = models.JSONField()
    """The texts of the form."""
    status = models.SmallIntegerField()
    """The HTTP status of the response."""
    ms = models.FloatField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "objects_console_entry"
        default_permissions = ()
        permissions = (("use_console", "Can use the console"),)
        indexes = (models.Index(fields=("user", "-id"), name="objects_console_entry_latest"),)


class FavouriteClass(models.Model):
    """A class that a staff user has put at the beginning of the sidebar."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    class_name = models.CharField(max_length=128)

    class Meta:
        db_table = "objects_staff_favourite_class"
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(
                fields=("user", "class_name"), name="objects_staff_favourite_class_once"
            ),
        )


class StaffGrid(models.Model):
    """How a staff user sees the objects of a class.

    Without a name it is the user's current choice of columns; with one it is a saved view, which
    also has a filter and an order, and which all staff see if it is shared. ``columns`` has pairs
    of a field and a width in pixels.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    class_name = models.TextField()
    name = models.TextField(default="", blank=True)
    is_shared = models.BooleanField(default=False)
    where = models.TextField(default="", blank=True)
    order = models.TextField(default="", blank=True)
    columns = models.JSONField(default=list)
    size = models.PositiveSmallIntegerField(default=100)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "objects_staff_grid"
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(
                fields=("user", "class_name", "name"), name="objects_staff_grid_unique"
            ),
        )
        indexes = (
            models.Index(
                fields=("class_name",),
                condition=models.Q(is_shared=True),
                name="objects_staff_grid_shared",
            ),
        )
