"""``/validate_purchase``: receipts of the App Store, which this service doesn't check."""

from __future__ import annotations

from typing import Any, Final, TypedDict

from backend.http.call import Call
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from backend.kernel.errors import InvalidJSON
from backend.openapi import answer, describes

# A status of Apple's verifyReceipt, which apps handle: they ask again later.
_UNAVAILABLE: Final = 21005


class PurchaseReceipt(TypedDict):
    productIdentifier: str
    receipt: Any


class _ReceiptStatus(TypedDict):
    status: int
    error: str


class PurchaseView(ServiceView):
    """Refuse a receipt in the form in which Parse passes on Apple's refusals."""

    tag = "Service"

    @describes(
        "validatePurchase",
        "Check a receipt of the App Store",
        request=PurchaseReceipt,
        response=answer("The receipt wasn't checked.", _ReceiptStatus),
        description="Receipts aren't checked: the response always says that Apple's service isn't"
        " available.",
    )
    def post(self, call: Call) -> Answer:
        if not call.body.get("receipt") or not call.body.get("productIdentifier"):
            raise InvalidJSON("missing receipt or productIdentifier")
        return Answer(
            {
                "status": _UNAVAILABLE,
                "error": "The receipt server is not currently available.",
            }
        )
