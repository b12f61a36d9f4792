"""Filters of lists that may have millions of rows: their choices come from small tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from chain.models import Blockchain


class NetworkFilter(admin.SimpleListFilter):
    """Rows of one network."""

    title = "network"
    parameter_name = "network_id"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        networks = Blockchain.objects.filter(network_id__isnull=False).order_by("network_id")
        return [(str(network.network_id), str(network)) for network in networks[:200]]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = self.value()
        if not value or not value.isdecimal() or len(value) > 16:
            return queryset
        return queryset.filter(network_id=value)


class CanonicalFilter(admin.SimpleListFilter):
    """Events that are in the chain, or those that a reorganisation removed."""

    title = "in the chain"
    parameter_name = "canonical"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return [("yes", "yes"), ("no", "removed by a reorganisation")]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        if self.value() in ("yes", "no"):
            return queryset.filter(canonical=self.value() == "yes")
        return queryset
