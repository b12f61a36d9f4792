"""Staff users, their groups and the history of backups in the admin."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.template.defaultfilters import filesizeformat
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from backend.backups.models import BackupRun
from backend.overview import advisor, start
from backend.site.model_admin import ModelAdmin, ReadOnlyModelAdmin

__all__ = ["BackupRunAdmin", "StaffAdmin", "StaffGroupAdmin", "advisor", "start"]

admin.site.unregister((User, Group))


@admin.register(User)
class StaffAdmin(UserAdmin, ModelAdmin):
    """Staff users, and what they may do. Only superusers are allowed here."""

    section = "Staff"
    icon = "badge"
    sidebar_title = "Staff"
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_staff", "is_superuser", "last_login")


@admin.register(Group)
class StaffGroupAdmin(GroupAdmin, ModelAdmin):
    """Groups. ``manage.py prepare`` gives Viewers, Editors and Administrators their permissions."""

    section = "Staff"
    icon = "groups"


@admin.register(BackupRun)
class BackupRunAdmin(ReadOnlyModelAdmin):
    """Runs of backups; ``manage.py backup --list`` shows what the place has."""

    section = "Operations"
    icon = "backup"
    sidebar_title = "Backups"
    list_display = ("archive", "started_at", "state", "verification", "bytes", "took", "note")
    list_filter = ("state",)

    @admin.display(description="archive")
    def archive(self, run: BackupRun) -> str:
        return run.name.rpartition("/")[2] or "-"

    @admin.display(description="size")
    def bytes(self, run: BackupRun) -> str:
        return filesizeformat(run.size) if run.size is not None else "-"

    @admin.display(description="took")
    def took(self, run: BackupRun) -> str:
        return "-" if run.seconds is None else str(timedelta(seconds=round(run.seconds)))
