"""The REST routes, below ``MOUNT_PATH``. Resolved by ``edge``; the busiest come first."""

from __future__ import annotations

from django.urls import path

from backend.api.health import health
from objects.views.aggregate import AggregateView
from objects.views.batch import BatchView
from objects.views.classes import ObjectsView, ObjectView
from objects.views.schemas import PurgeView, SchemasView, SchemaView

urlpatterns = [
    path("classes/<str:class_name>/<str:object_id>", ObjectView.as_view()),
    path("classes/<str:class_name>", ObjectsView.as_view()),
    path("health", health),
    path("batch", BatchView.as_view()),
    path("schemas", SchemasView.as_view()),
    path("schemas/<str:class_name>", SchemaView.as_view()),
    path("purge/<str:class_name>", PurgeView.as_view()),
    path("aggregate/<str:class_name>", AggregateView.as_view()),
]
