"""Events in the admin, to look at."""

from __future__ import annotations

from django.contrib import admin

from backend.site.model_admin import ReadOnlyModelAdmin
from objects.analytics.models import Event


@admin.register(Event)
class EventAdmin(ReadOnlyModelAdmin):
    """The list of events; one name at a time by searching for it."""

    section = "Operations"
    icon = "monitoring"
    list_display = ("name", "at", "dimensions", "received_at")
    search_fields = ("name__exact",)
    search_help_text = "the whole name of an event"
    ordering = ("-id",)
    empty_text = "Events are listed here when apps report them, with POST /events/NAME."
