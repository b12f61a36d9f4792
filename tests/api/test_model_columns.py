"""What only a class with a Django model has: columns, rules, and rows that the ORM writes."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import models
from django.utils import timezone

from backend.kernel.errors import InvalidKeyName
from objects.definitions.models import ObjectClass
from tests.catalogue.models import Book


def test_promoted_fields_are_in_columns_and_the_others_in_data(master):
    object_id = master.make(
        "Book",
        title="Dune",
        pages=612,
        inPrint=True,
        published={"__type": "Date", "iso": "1965-08-01T00:00:00.123Z"},
        author={"__type": "Pointer", "className": "Author", "objectId": "herbert123"},
        tags=["desert", "spice"],
        free="a field without a column",
    )
    row = Book.objects.get(pk=object_id)
    assert (row.title, row.pages, row.in_print, row.author) == ("Dune", 612, True, "herbert123")
    assert row.published.isoformat() == "1965-08-01T00:00:00.123000+00:00"
    assert row.tags == ["desert", "spice"]
    assert row.data == {"free": "a field without a column"}


def test_rows_that_the_orm_writes_are_objects(client, master):
    now = timezone.now()
    master.make("Book")
    Book.objects.create(object_id="byHand1234", title="ORM", created_at=now, updated_at=now)
    stored = client.get("/classes/Book/byHand1234").json
    assert stored["title"] == "ORM"
    assert client.results("Book", where={"title": "ORM"}, order="-createdAt") == [stored]


def test_the_class_is_there_before_anybody_has_saved_an_object(client, master):
    assert client.results("Book") == []
    assert "Book" in [schema["className"] for schema in master.get("/schemas").json["results"]]


@pytest.mark.parametrize(
    "change",
    [
        {"pages": 1.5},
        {"pages": {"__op": "Increment", "amount": 0.5}},
        {"pages": 2**63},
        {"price": 10**30},
        {"isbn": "x" * 21},
    ],
)
def test_what_a_column_can_not_hold_is_refused(master, change):
    object_id = master.make("Book", pages=1, price=1, isbn="1")
    before = master.get(f"/classes/Book/{object_id}").json
    reply = master.put(f"/classes/Book/{object_id}", change)
    assert 400 <= reply.status < 500
    assert set(reply.json) == {"code", "error"}
    assert "catalogue_book" not in reply.json["error"]
    assert before["pages"] == 1


def test_a_rule_of_the_model_holds_for_every_write(master):
    reply = master.post("/classes/Book", {"pages": -1})
    assert reply.error == (400, 142)
    assert "pages_not_negative" not in reply.json["error"]


def test_a_field_that_is_a_column_can_not_be_removed(master):
    master.make("Book", title="x")
    reply = master.put("/schemas/Book", {"fields": {"title": {"__op": "Delete"}}})
    assert reply.error == (400, 255)
    assert master.results("Book")[0]["title"] == "x"


def test_the_class_is_made_again_when_its_definition_was_emptied_away(master):
    master.make("Book", title="x")
    ObjectClass.objects.filter(name="Book").delete()  # what this process remembers is outdated
    reply = master.delete("/purge/Book")
    assert reply.status == 200, reply.json
    assert master.results("Book") == []


def test_an_index_on_a_column_is_built(master):
    master.make("Book", title="x", pages=1)
    reply = master.put("/schemas/Book", {"indexes": {"by_pages": {"pages": 1, "title": -1}}})
    assert reply.status == 200, reply.json
    assert len(master.results("Book", where={"pages": {"$gt": 0}}, order="pages")) == 1


def test_a_model_that_can_not_hold_a_field_is_refused_at_start():
    from objects.core.schema.definition import FieldType
    from objects.definitions.models import ModelBackedObject
    from objects.definitions.registry import model_class

    class Odd(ModelBackedObject):
        place = models.BinaryField()
        name = models.TextField()
        good = models.TextField(db_collation="C")

        class Meta:
            app_label = "catalogue"
            managed = False

    for field, message in (
        ("place", "can't hold a promoted field"),
        ("name", "db_collation"),
    ):
        with pytest.raises(ImproperlyConfigured, match=message):
            model_class("Odd", Odd, {field: FieldType("String")})
    with pytest.raises(InvalidKeyName, match="Invalid field name"):
        model_class("Odd", Odd, {"go\u200bod": FieldType("String")})
    with pytest.raises(ImproperlyConfigured, match="offered by two models"):
        model_class("Book", Odd, {"good": FieldType("String")})
