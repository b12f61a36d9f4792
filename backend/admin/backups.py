"""Backups in the admin: their history and age, and making, verifying and downloading one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.timesince import timesince
from django.views.decorators.http import require_POST

from backend.admin import documentation
from backend.backups import history, process
from backend.backups.models import BackupRun
from backend.logs.setup import get_logger
from backend.overview import requested_tasks
from backend.overview.remedies import MAKE_BACKUPS
from backend.settings.conf import service_settings
from backend.settings.schedule import JOBS, VERIFY_BACKUP
from backend.site.model_admin import ReadOnlyModelAdmin, page
from backend.site.staff import require
from objects.staff import gate, second_factor

_LIST: Final = "admin:backend_backuprun_changelist"

log = get_logger("admin")


@admin.register(BackupRun)
class BackupRunAdmin(ReadOnlyModelAdmin):
    """Runs of backups; ``manage.py backup --list`` shows what the place has."""

    section = "Operations"
    icon = "backup"
    sidebar_title = "Backups"
    empty_text = "Runs are listed here when the schedule or one of you has made a backup."
    list_before_template = "admin/backups.html"
    change_form_outer_before_template = "admin/backup.html"
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

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        state = history.state()
        last_good = state.last_good
        context = {
            "backups": {
                "place": service_settings.BACKUP_TO,
                "schedule": service_settings.BACKUP_SCHEDULE,
                "age": timesince(last_good.started_at) if last_good is not None else "",
                "is_late": state.is_late,
                "has_failed": state.has_failed,
                "may_make": request.user.has_perm(MAKE_BACKUPS),
                "documentation": documentation.link_to("backups"),
            }
        }
        return super().changelist_view(request, {**(extra_context or {}), **context})

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        run = self.get_object(request, object_id)
        context = {
            "backup": run,
            "is_stored": run is not None and _is_stored(run),
            "may_verify": request.user.has_perm(MAKE_BACKUPS),
            "may_download": request.user.is_superuser,
        }
        return super().change_view(
            request, object_id, form_url, {**(extra_context or {}), **context}
        )


def _is_stored(run: BackupRun) -> bool:
    """Return whether the archive was stored where backups are stored now; it may be removed."""
    return run.state == BackupRun.State.OK and bool(run.name and service_settings.BACKUP_TO)


@page("backups/make/", name="backup_make", permission=MAKE_BACKUPS)
@require_POST
def make(request: HttpRequest) -> HttpResponseBase:
    """Let a worker make a backup."""
    if not service_settings.BACKUP_TO:
        messages.error(request, "There is no place for backups: set BACKUP_TO.")
    elif BackupRun.objects.filter(state=BackupRun.State.RUNNING).exists():
        messages.warning(request, "A backup is being made already.")
    else:
        _note(request, "make backup")
        requested_tasks.request_backup()
        messages.success(request, "A backup is being made: reload this page to see how it ends.")
    return redirect(_LIST)


@page("backups/<int:run_id>/verify/", name="backup_verify", permission=MAKE_BACKUPS)
@require_POST
def verify(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Let a worker read an archive back and check it; the note of its run has the result."""
    run = get_object_or_404(BackupRun, pk=run_id)
    if _is_stored(run):
        _note(request, "verify backup", name=run.name)
        requested_tasks.request(VERIFY_BACKUP, run.name, queue=JOBS)
        messages.success(request, "The archive is being read: its note says how that ends.")
    else:
        messages.error(request, "This run has no archive in BACKUP_TO.")
    return redirect("admin:backend_backuprun_change", run_id)


@page("backups/<int:run_id>/download/", name="backup_download", permission=MAKE_BACKUPS)
@require_POST
def download(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Send an archive, decrypted, for superusers. It holds the keys of the instance, so it takes
    the second factor again, as a change of it does."""
    if not request.user.is_superuser:
        raise PermissionDenied
    require(request, MAKE_BACKUPS)
    run = get_object_or_404(BackupRun, pk=run_id)
    own_page = reverse("admin:backend_backuprun_change", args=(run_id,))
    if not _is_stored(run):
        messages.error(request, "This run has no archive in BACKUP_TO.")
        return redirect(own_page)
    has_second_factor = second_factor.since(request.user.pk) is not None
    if not second_factor.is_off() and has_second_factor and not gate.has_just_passed(request):
        messages.info(request, "Pass the second factor again to download an archive.")
        return redirect(f"{reverse('admin:second_factor')}?{urlencode({'next': own_page})}")
    try:
        pieces = process.read_archive(run.name)
    except process.ArchiveUnreadable as error:
        messages.error(request, str(error))
        return redirect(own_page)
    _note(request, "download backup", name=run.name)
    response = StreamingHttpResponse(pieces, content_type="application/x-tar")
    file_name = run.name.rpartition("/")[2]
    response.headers["Content-Disposition"] = f'attachment; filename="{file_name}"'
    return response


def _note(request: HttpRequest, action: str, **about: str) -> None:
    log.info("staff write", staff=request.user.get_username(), action=action, **about)
