"""``_Product``: what an app sells, and the file that a purchase of it unlocks."""

from __future__ import annotations

from typing import Final

from backend.kernel.errors import IncorrectType
from objects.core.names import ClassName, Subject
from objects.rules import Change, Rules, set_rules

PRODUCT: Final = ClassName(Subject("_Product"))
_REQUIRED: Final = ("productIdentifier", "icon", "order", "title", "subtitle")


class ProductRules(Rules[Change]):
    """A product is complete, and ``downloadName`` is the name of its file."""

    def before_create(self, change: Change) -> None:
        for name in _REQUIRED:
            if _is_missing(change.fields.get(name)):
                raise IncorrectType(f"{name} is required.")
        _name_download(change)

    def before_update(self, change: Change) -> None:
        for name in _REQUIRED:
            if name in change.fields and _is_missing(change.fields[name]):
                raise IncorrectType(f"{name} is required.")
        _name_download(change)


def _is_missing(value: object) -> bool:
    is_deletion = isinstance(value, dict) and value.get("__op") == "Delete"
    return value is None or value == "" or is_deletion


def _name_download(change: Change) -> None:
    download = change.fields.get("download")
    if isinstance(download, dict) and isinstance(download.get("name"), str):
        change.fields["downloadName"] = download["name"]


def offer_products() -> None:
    """Give ``_Product`` its rules."""
    set_rules(PRODUCT, ProductRules())
