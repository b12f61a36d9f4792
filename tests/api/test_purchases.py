"""``/validate_purchase`` and the class ``_Product``."""

from __future__ import annotations

RECEIPT = {"__type": "Bytes", "base64": "cmVjZWlwdA=="}
PRODUCT = {
    "productIdentifier": "coins",
    "icon": {"__type": "File", "name": "icon.png"},
    "download": {"__type": "File", "name": "coins.zip"},
    "order": 1,
    "title": "Coins",
    "subtitle": "A bag of coins",
}


def test_a_request_without_receipt_or_product(client):
    for body in ({}, {"receipt": RECEIPT}, {"productIdentifier": "coins"}, {"receipt": ""}):
        reply = client.post("/validate_purchase", body)
        assert reply.error == (400, 107)
        assert reply.json["error"] == "missing receipt or productIdentifier"


def test_receipts_are_not_checked(client):
    body = {"receipt": RECEIPT, "productIdentifier": "coins", "bypassAppStoreValidation": True}
    reply = client.post("/validate_purchase", body)
    assert reply.status == 200
    assert reply.json["status"] == 21005


def test_a_product_is_complete(master):
    for name in ("productIdentifier", "icon", "order", "title", "subtitle"):
        incomplete = {key: value for key, value in PRODUCT.items() if key != name}
        reply = master.post("/classes/_Product", incomplete)
        assert reply.error == (400, 111)
        assert reply.json["error"] == f"{name} is required."


def test_a_product_stays_complete(master):
    product = master.make("_Product", **PRODUCT)
    path = f"/classes/_Product/{product}"
    assert master.put(path, {"title": {"__op": "Delete"}}).error == (400, 111)
    assert master.put(path, {"title": "More coins"}).status == 200
    stored = master.get(path).json
    assert (stored["title"], stored["downloadName"]) == ("More coins", "coins.zip")
