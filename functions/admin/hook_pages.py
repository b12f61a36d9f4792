"""Webhooks, the way of their delivery, and deliveries, which can be sent again, in the admin."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.formats import localize
from django.utils.timezone import localtime, now

from backend.site.model_admin import ReadOnlyModelAdmin
from functions.webhooks import deliveries, service
from functions.webhooks.models import Delivery, Hook

_MOST_AGAIN = 1000


@admin.register(Hook)
class HookAdmin(ReadOnlyModelAdmin):
    """The list of webhooks; ``/hooks`` declares them."""

    section = "Server code"
    icon = "webhook"
    position = 60
    empty_text = "Webhooks are declared with POST /hooks/functions and /hooks/triggers."

    list_display = ("__str__", "address", "background", "paused_until", "updated_at")
    actions = ("deliver_by_worker", "deliver_in_request")
    search_fields = ("function_name__startswith", "class_name__startswith")
    shown = (
        *("function_name", "class_name", "trigger_name", "address"),
        *("background", "paused_until", "created_at", "updated_at"),
    )
    readonly_fields = shown
    fields = shown

    @admin.display(description="address")
    def address(self, hook: Hook) -> str:
        parts = urlsplit(hook.url)
        # What comes after the question mark often is a secret.
        return f"{parts.scheme}://{parts.netloc}{parts.path}{'?…' if parts.query else ''}"

    @admin.display(description="paused until", ordering="rests_until")
    def paused_until(self, hook: Hook) -> str | None:
        if hook.rests_until is None or hook.rests_until <= now():
            return None
        return localize(localtime(hook.rests_until))

    def has_set_background_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("functions.change_hook"))

    @admin.action(
        description="Deliver by a worker only (after… triggers)", permissions=["set_background"]
    )
    def deliver_by_worker(self, request: HttpRequest, chosen: QuerySet[Hook]) -> None:
        self._set_background(request, chosen, True)

    @admin.action(
        description="Deliver before the response (after… triggers)", permissions=["set_background"]
    )
    def deliver_in_request(self, request: HttpRequest, chosen: QuerySet[Hook]) -> None:
        self._set_background(request, chosen, False)

    def _set_background(
        self, request: HttpRequest, chosen: QuerySet[Hook], background: bool
    ) -> None:
        ids = [*chosen.order_by("id").values_list("id", flat=True)[:_MOST_AGAIN]]
        count = service.set_background(ids, background)
        plural = "webhook was" if count == 1 else "webhooks were"
        messages.success(request, f"{count} {plural} changed.")


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyModelAdmin):
    """The list of deliveries: pending, delivered and given up."""

    section = "Server code"
    icon = "outbox"
    position = 61

    list_display = ("key", "about", "state", "attempts", "created_at", "due", "last_error")
    list_filter = ("state",)
    search_fields = ("key__exact", "about__startswith")
    actions = ("send_again",)
    shown = (
        *("key", "about", "state", "attempts", "last_error"),
        *("created_at", "due", "ended_at", "body"),
    )
    readonly_fields = shown
    fields = shown

    @admin.display(description="next attempt", ordering="due_at")
    def due(self, delivery: Delivery) -> str | None:
        if delivery.state != Delivery.State.PENDING:
            return None
        return localize(localtime(delivery.due_at))

    def has_send_again_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("functions.change_delivery"))

    @admin.action(description="Send again, from the first attempt on", permissions=["send_again"])
    def send_again(self, request: HttpRequest, chosen: QuerySet[Delivery]) -> None:
        ids = [*chosen.order_by("id").values_list("id", flat=True)[:_MOST_AGAIN]]
        count = deliveries.redeliver(ids)
        if count == 1:
            messages.success(request, "One delivery is sent again.")
        else:
            messages.success(request, f"{count} deliveries are sent again.")
