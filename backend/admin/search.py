"""The endpoint of the search, and what it finds that belongs to no app: pages of the menu."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from backend.http.staff_api import ANY_STAFF, StaffAPIView
from backend.site import search
from backend.site.model_admin import endpoint
from backend.site.search import Result, search_source
from backend.site.sidebar import page_sections


class _Result(serializers.Serializer[Any]):
    title = serializers.CharField()
    detail = serializers.CharField()
    link = serializers.CharField()
    icon = serializers.CharField()


class _Group(serializers.Serializer[Any]):
    title = serializers.CharField()
    results = _Result(many=True)


class _Answer(serializers.Serializer[Any]):
    groups = _Group(many=True)
    notes = serializers.ListField(child=serializers.CharField())


class _Query(serializers.Serializer[Any]):
    q = serializers.CharField(max_length=search.LONGEST, allow_blank=True)
    group = serializers.CharField(max_length=40, default="")


class SearchView(StaffAPIView):
    """What matches ``q`` and the staff user may see; with ``group``, in this group alone."""

    permissions = {"GET": ANY_STAFF}

    def get(self, request: Request) -> Response:
        query = _Query(data=request.query_params)
        query.is_valid(raise_exception=True)
        answer = search.search(request._request, **query.validated_data)
        return Response(_Answer(answer).data)


endpoint("search/results/", SearchView.as_view(), name="search_results")


@search_source("Pages", icon="draft", position=5, permission=None)
def pages(request: HttpRequest, text: str) -> Iterator[Result]:
    """The pages of the menu."""
    for section in page_sections(request):
        for entry in section["items"]:
            yield Result(entry["title"], entry["link"], section["title"], icon=entry["icon"])
