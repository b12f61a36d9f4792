"""Demo data: three classes of a small shop, made and removed through the object service."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from backend.kernel.errors import ServiceError
from backend.kernel.json_types import Json
from backend.kernel.principal import Principal
from objects import service
from objects.core.access.class_permissions import ACTIONS
from objects.core.names import ClassName, Subject
from objects.core.values import pointer
from objects.definitions import registry
from objects.service import classes

_CUSTOMER: Final = ClassName(Subject("DemoCustomer"))
_PRODUCT: Final = ClassName(Subject("DemoProduct"))
_ORDER: Final = ClassName(Subject("DemoOrder"))
_TEXT: Final[Json] = {"type": "String"}
_NUMBER: Final[Json] = {"type": "Number"}
CLASSES: Final[Mapping[ClassName, dict[str, Json]]] = {
    _CUSTOMER: {
        "name": _TEXT,
        "city": _TEXT,
        "place": {"type": "GeoPoint"},
        "since": {"type": "Date"},
    },
    _PRODUCT: {"name": _TEXT, "price": _NUMBER, "stock": _NUMBER, "tags": {"type": "Array"}},
    _ORDER: {
        "number": _TEXT,
        "status": _TEXT,
        "total": _NUMBER,
        "orderedAt": {"type": "Date"},
        "customer": {"type": "Pointer", "targetClass": _CUSTOMER},
        "product": {"type": "Pointer", "targetClass": _PRODUCT},
    },
}
"""The classes with their fields. They are for the master key alone."""
_NAMES: Final = ("Ada", "Björn", "Chiyo", "Dmitri", "Elif", "Femi", "Gita", "Hugo", "Inés", "Jan")
_SURNAMES: Final = ("Abe", "Berg", "Costa", "Diaz", "Eze", "Fischer", "Gupta", "Horvat")
_CITIES: Final = (
    ("Berlin", 52.52, 13.405),
    ("Lagos", 6.455, 3.384),
    ("Osaka", 34.694, 135.502),
    ("Porto", 41.149, -8.611),
    ("Toronto", 43.653, -79.383),
)
_PRODUCTS: Final = (
    ("Espresso cup", 12.5, ["kitchen"]),
    ("Desk lamp", 49.0, ["office", "light"]),
    ("Notebook, dotted", 8.9, ["office", "paper"]),
    ("Rain jacket", 119.0, ["clothes"]),
    ("Water bottle", 19.0, ["kitchen", "travel"]),
    ("Wool socks", 14.0, ["clothes"]),
    ("Travel adapter", 24.9, ["travel"]),
    ("Bookend", 17.5, ["office"]),
)
_STATUSES: Final = ("paid", "paid", "sent", "sent", "sent", "open", "returned")
_CUSTOMERS: Final = 40
_ORDERS: Final = 240
_DAYS: Final = 90


def add(principal: Principal) -> None:
    """Make the classes and their objects; nothing is left of them if that fails.

    Raises ``InvalidClassName`` if there is a class of these names.
    """
    made: list[ClassName] = []
    try:
        for name, fields in CLASSES.items():
            indexes: dict[str, Json] = {"by_number": {"number": 1}} if name == _ORDER else {}
            body: dict[str, Json] = {
                "fields": fields,
                "indexes": indexes,
                "classLevelPermissions": {action: {} for action in ACTIONS},
            }
            classes.create(principal, name, body)
            made.append(name)
        _add_objects(principal)
    except ServiceError:
        _remove(principal, made)
        raise


def remove(principal: Principal) -> None:
    """Remove the classes with all of their objects, also those that were added since."""
    _remove(principal, [name for name in CLASSES if registry.find(name) is not None])


def _remove(principal: Principal, names: list[ClassName]) -> None:
    for name in reversed(names):
        classes.purge(principal, name)
        classes.delete(principal, name)


def _add_objects(principal: Principal) -> None:
    random = Random(1)
    now = datetime.now(UTC)

    def date(most_days: int) -> Json:
        moment = now - timedelta(minutes=random.randrange(most_days * 24 * 60))
        return {"__type": "Date", "iso": f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"}

    def customer() -> dict[str, Json]:
        city, latitude, longitude = random.choice(_CITIES)
        place: Json = {
            "__type": "GeoPoint",
            "latitude": round(latitude + random.uniform(-0.05, 0.05), 4),
            "longitude": round(longitude + random.uniform(-0.05, 0.05), 4),
        }
        name = f"{random.choice(_NAMES)} {random.choice(_SURNAMES)}"
        return {"name": name, "city": city, "place": place, "since": date(3 * 365)}

    customers = _create(principal, _CUSTOMER, [customer() for _ in range(_CUSTOMERS)])
    products = _create(
        principal,
        _PRODUCT,
        [
            {"name": name, "price": price, "stock": random.randrange(80), "tags": [*tags]}
            for name, price, tags in _PRODUCTS
        ],
    )

    def order(number: int) -> dict[str, Json]:
        index = random.randrange(len(products))
        return {
            "number": f"D-{number:04}",
            "status": random.choice(_STATUSES),
            "total": round(_PRODUCTS[index][1] * random.choice((1, 1, 1, 2, 3)), 2),
            "orderedAt": date(_DAYS),
            "customer": pointer(_CUSTOMER, random.choice(customers)),
            "product": pointer(_PRODUCT, products[index]),
        }

    _create(principal, _ORDER, [order(number) for number in range(1, _ORDERS + 1)])


def _create(
    principal: Principal, class_name: ClassName, objects: list[dict[str, Json]]
) -> list[str]:
    """Store the objects and return their ids. Raises the first error."""
    ids: list[str] = []
    for outcome in service.create_many(principal, class_name, objects):
        if isinstance(outcome, ServiceError):
            raise outcome
        ids.append(outcome.object_id)
    return ids
