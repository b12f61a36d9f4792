"""Contracts: the list, and one more by its address and ABI."""

from __future__ import annotations

from typing import Any

import msgspec
from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from backend.kernel.errors import ServiceError
from backend.logs.setup import get_logger
from backend.site.model_admin import ReadOnlyModelAdmin, page, render
from backend.site.staff import principal_for, require
from chain.admin.choices import NetworkFilter
from chain.models import Blockchain, SmartContract
from objects import service
from objects.core.names import check_class_name

_ADD = "chain.add_smartcontract"
log = get_logger("admin")


@admin.register(SmartContract)
class SmartContractAdmin(ReadOnlyModelAdmin):
    """The registered contracts. They are edited as objects of their class."""

    section = "Chain"
    icon = "contract"
    position = 20
    also_at = ("/admin/chain/contracts/",)
    list_before_template = "admin/chain/contracts.html"
    change_form_before_template = "admin/chain/contract.html"
    list_display = ("name", "address", "network_id", "kind", "start_block", "shown_listening")
    list_filter = (NetworkFilter, "listening")
    search_fields = ("name__startswith", "address__exact")
    shown = (
        "object_id",
        "name",
        "address",
        "network_id",
        "kind",
        "start_block",
        "listening",
        "abi",
    )
    readonly_fields = shown
    fields = shown

    @display(description="listening", boolean=True)
    def shown_listening(self, row: SmartContract) -> bool:
        return row.listening is True

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        offered = {"may_add_contract": request.user.has_perm(_ADD)}
        return super().changelist_view(request, {**(extra_context or {}), **offered})


class ContractForm(forms.Form):
    """A contract by its address and ABI."""

    network = forms.ChoiceField(widget=UnfoldAdminSelectWidget)
    name = forms.CharField(max_length=200, widget=UnfoldAdminTextInputWidget)
    address = forms.CharField(max_length=64, widget=UnfoldAdminTextInputWidget)
    abi = forms.CharField(
        label="ABI",
        max_length=2_000_000,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 10, "spellcheck": "false"}),
        help_text="JSON as compilers write it: the list itself, or an object that has it as abi.",
    )
    kind = forms.CharField(
        required=False,
        max_length=64,
        widget=UnfoldAdminTextInputWidget,
        help_text="token, diamond, facet, …",
    )
    start_block = forms.IntegerField(
        required=False,
        min_value=0,
        widget=UnfoldAdminTextInputWidget,
        help_text="Where its history begins; without one, at its creation. Events of new blocks are"
        " stored in any case.",
    )
    listening = forms.BooleanField(
        required=False, initial=True, widget=UnfoldBooleanSwitchWidget, label="Store its events"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        networks = Blockchain.objects.filter(network_id__isnull=False).order_by("network_id")
        choice = self.fields["network"]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [(str(network.network_id), str(network)) for network in networks]

    def clean_abi(self) -> list[Any]:
        try:
            parsed = msgspec.json.decode(self.cleaned_data["abi"])
        except (msgspec.DecodeError, RecursionError):
            raise forms.ValidationError("This is no JSON.") from None
        abi = parsed.get("abi") if isinstance(parsed, dict) else parsed
        if not isinstance(abi, list):
            raise forms.ValidationError("A list is needed, or an object with one as abi.")
        return abi

    def object(self) -> dict[str, Any]:
        """The contract as an object of its class."""
        values = self.cleaned_data
        fields = {
            "name": values["name"],
            "address": values["address"].strip(),
            "networkId": int(values["network"]),
            "abi": values["abi"],
            "listening": values["listening"],
        }
        if values["kind"]:
            fields["kind"] = values["kind"]
        if values["start_block"] is not None:
            fields["startBlock"] = values["start_block"]
        return fields


@page("chain/contracts/add/", name="chain_contract_add", permission=_ADD, title="Add a contract")
def add_contract(request: HttpRequest) -> HttpResponseBase:
    """Register a contract, through the door like everybody."""
    form = ContractForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        require(request, _ADD)
        try:
            made = service.create(
                principal_for(request.user, _ADD), check_class_name("SmartContract"), form.object()
            )
        except ServiceError as error:
            form.add_error(None, error.message)
        else:
            log.info(
                "staff write",
                staff=request.user.get_username(),
                action="add",
                class_name="SmartContract",
            )
            messages.success(request, f"{form.cleaned_data['name']} is registered.")
            return HttpResponseRedirect(
                reverse("admin:chain_smartcontract_change", args=[made.object_id])
            )
    return render(request, "admin/chain/add_contract.html", "Add a contract", form=form)
