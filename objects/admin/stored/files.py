"""Files in the admin, to look at; the master key and ``clean_files`` remove them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat

from backend.site.model_admin import ReadOnlyModelAdmin
from objects.files.models import StoredFile


@admin.register(StoredFile)
class StoredFileAdmin(ReadOnlyModelAdmin):
    """The list of stored files, and what is known about each."""

    section = "Data"
    icon = "folder_open"
    position = 20

    list_display = ("name", "shown_size", "content_type", "readers", "owner_id", "created_at")
    search_fields = ("name__startswith", "owner_id__exact")
    date_hierarchy = None
    empty_text = "Files are listed here when apps have uploaded them."
    fields_shown = (
        *("name", "shown_size", "content_type", "sha256", "metadata", "tags"),
        *("owner_id", "charged_to", "complete", "readers", "read_acl", "created_at"),
    )
    readonly_fields = fields_shown

    def get_fields(self, request: HttpRequest, obj: StoredFile | None = None) -> Any:
        return self.fields_shown

    @admin.display(description="size", ordering="size")
    def shown_size(self, file: StoredFile) -> str:
        return filesizeformat(file.size)

    @admin.display(description="may be read by")
    def readers(self, file: StoredFile) -> str:
        return "everybody" if file.read_acl is None else "its access list"
