"""A halted network is read again: what ``manage.py chain_resume`` does, for staff."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from unfold.widgets import UnfoldAdminTextInputWidget

from backend.site.model_admin import page, render
from backend.site.staff import require
from chain.indexing import head
from chain.indexing.head.halts import CannotResume
from chain.models import Blockchain, Cursor
from objects.admin.people.pages import note
from objects.database import maintenance

_CHANGE = "chain.change_blockchain"
_ON, _UNWIND, _ANEW = "on", "unwind", "anew"
_WAYS = (
    (_ON, "Resume at the same block: a provider was wrong and has been replaced."),
    (
        _UNWIND,
        "Take back what was read above a block, and read on from there: the network has another"
        " chain now.",
    ),
    (
        _ANEW,
        "Take back everything, and read the network as a new one: a development chain was thrown"
        " away.",
    ),
)


class ResumeForm(forms.Form):
    """How to go on, and that it is meant."""

    way = forms.ChoiceField(choices=_WAYS, widget=forms.RadioSelect, label="How to resume")
    block = forms.IntegerField(
        required=False,
        min_value=0,
        label="The last block that both chains have",
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
        help_text="Only where what was read is taken back above a block.",
    )
    confirmation = forms.CharField(
        label="The network's id, to confirm",
        max_length=20,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
    )

    def __init__(self, network_id: int, *args: Any) -> None:
        super().__init__(*args)
        self._network_id = network_id

    def clean_confirmation(self) -> str:
        confirmation: str = self.cleaned_data["confirmation"].strip()
        if confirmation != str(self._network_id):
            raise forms.ValidationError("This isn't the network's id.")
        return confirmation

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if (values.get("way") == _UNWIND) != (values.get("block") is not None):
            self.add_error("block", "A block goes with taking back what is above it.")
        return values


@page(
    "networks/<int:network_id>/resume/",
    name="chain_resume",
    permission=_CHANGE,
    title="Resume a network",
)
def resume(request: HttpRequest, network_id: int) -> HttpResponseBase:
    """Why the network is halted, and reading it again."""
    network = Blockchain.objects.filter(network_id=network_id).first()
    if network is None:
        raise Http404
    cursor = Cursor.objects.filter(pk=network_id).first()
    form = ResumeForm(network_id, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        require(request, _CHANGE)
        try:
            _resume(network_id, form.cleaned_data)
        except CannotResume as reason:
            form.add_error(None, str(reason))
        else:
            note(
                request,
                "resume",
                network=network_id,
                way=form.cleaned_data["way"],
                block=form.cleaned_data["block"],
                halted=cursor.halted if cursor else None,
            )
            messages.success(request, f"{network} goes on.")
            return HttpResponseRedirect(reverse("admin:networks"))
    return render(
        request,
        "admin/chain/resume.html",
        f"Resume {network}",
        cursor=cursor,
        form=form,
    )


def _resume(network_id: int, values: dict[str, Any]) -> None:
    maintenance.check()
    if values["way"] == _ANEW:
        head.index_from_scratch(network_id)
    else:
        head.resume(network_id, unwind_to=values["block"])
