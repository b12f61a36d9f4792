"""The history of backups in the admin."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import admin
from django.template.defaultfilters import filesizeformat

from backend.backups.models import BackupRun
from backend.site.model_admin import ReadOnlyModelAdmin


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
