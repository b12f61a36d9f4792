"""The service's own endpoints: their addresses are written here and never shown again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextInputWidget

from backend.kernel.errors import ObjectNotFound
from backend.site.model_admin import ModelAdmin
from chain.admin.choices import NetworkFilter
from chain.models import Provider
from chain.networks.providers import FIELDS, check_network
from chain.rpc.addresses import LONGEST
from chain.rpc.endpoints import seal
from objects.database import maintenance

_NEVER_SHOWN = "Stored encrypted and never shown."
_KEPT = f"{_NEVER_SHOWN} Leave it empty to keep the present one."


class ProviderForm(forms.ModelForm):
    """A provider; its addresses are only ever written."""

    new_url = forms.CharField(
        required=False,
        max_length=LONGEST,
        label="RPC address",
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
        help_text=f"http:// or https://. {_KEPT}",
    )
    new_socket_url = forms.CharField(
        required=False,
        max_length=LONGEST,
        label="WebSocket address",
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
        help_text=f"ws:// or wss://, if the network's blocks are announced there. {_KEPT}",
    )
    no_socket = forms.BooleanField(required=False, label="Forget the WebSocket address")

    class Meta:
        model = Provider
        fields = (
            *("network_id", "name", "weight", "active"),
            *("requests_per_second", "batch_size", "largest_range"),
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.url:
            return
        self.fields["new_url"].required = True
        for name in ("new_url", "new_socket_url"):
            field = self.fields[name]
            field.help_text = str(field.help_text).replace(_KEPT, _NEVER_SHOWN)

    def clean_new_url(self) -> str:
        url: str = self.cleaned_data["new_url"].strip()
        if not url and not self.instance.url:
            raise forms.ValidationError("An address is needed.")
        return url

    def clean_new_socket_url(self) -> str:
        url: str = self.cleaned_data["new_socket_url"].strip()
        return url

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        for key, read in FIELDS.items():
            field = {"url": "new_url", "socket_url": "new_socket_url"}.get(key, key)
            if field not in values or (field != key and not values[field]):
                continue
            if key == "name" and key not in self.changed_data:
                continue  # from before the rule
            try:
                read(values[field])
            except ValueError as error:
                self.add_error(field, str(error).capitalize() + ".")
        network_id = values.get("network_id")
        if network_id is not None and "network_id" in self.changed_data:
            try:
                check_network(network_id)
            except ObjectNotFound as error:
                self.add_error("network_id", error.message)
        return values

    def save(self, commit: bool = True) -> Any:
        if self.cleaned_data["new_url"]:
            self.instance.url = seal(self.cleaned_data["new_url"])
        if self.cleaned_data["no_socket"]:
            self.instance.socket_url = None
        elif socket_url := self.cleaned_data["new_socket_url"]:
            self.instance.socket_url = seal(socket_url)
        return super().save(commit)


@admin.register(Provider)
class ProviderAdmin(ModelAdmin):
    """The endpoints that the service asks, and how they have been lately."""

    section = "Chain"
    icon = "dns"
    position = 11
    form = ProviderForm
    list_display = (
        *("name", "network_id", "weight", "active", "head", "shown_latency", "failures"),
        *("paused_until", "shown_trouble", "checked_at"),
    )
    list_filter = (NetworkFilter, "active")
    readonly_fields = (
        "head",
        "shown_latency",
        "failures",
        "paused_until",
        "shown_trouble",
        "checked_at",
    )
    fields = (
        *("network_id", "name", "new_url", "new_socket_url", "no_socket", "weight", "active"),
        *("requests_per_second", "batch_size", "largest_range", *readonly_fields),
    )
    actions = None

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is not None:
            return self.fields
        # Of a provider that isn't there yet.
        hidden = ("no_socket", *self.readonly_fields)
        return tuple(name for name in self.fields if name not in hidden)

    @admin.display(description="latency")
    def shown_latency(self, row: Provider) -> str:
        return "-" if row.latency is None else f"{row.latency:.0f} ms"

    @admin.display(description="last trouble")
    def shown_trouble(self, row: Provider) -> str:
        return row.trouble or "-"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        maintenance.check()
        # The gateway writes the rest of the row meanwhile.
        written = (*ProviderForm.Meta.fields, "url", "socket_url") if change else None
        obj.save(update_fields=written)
