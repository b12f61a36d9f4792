"""Offers the model as the class ``Book``."""

from __future__ import annotations

from django.apps import AppConfig


class CatalogueConfig(AppConfig):
    name = "tests.catalogue"
    label = "catalogue"

    def ready(self) -> None:
        from objects.core.schema.definition import FieldType
        from objects.definitions.registry import model_class
        from tests.catalogue.models import Book

        model_class(
            "Book",
            Book,
            {
                "title": FieldType("String"),
                "isbn": FieldType("String", unique=True),
                "pages": FieldType("Number"),
                "price": FieldType("Number"),
                "inPrint": FieldType("Boolean"),
                "published": FieldType("Date"),
                "author": FieldType("Pointer", "Author"),
                "tags": FieldType("Array"),
                "cover": FieldType("Object"),
            },
            columns={"inPrint": "in_print"},
        )
