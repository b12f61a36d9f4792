"""Loading the checks of ``doctor``: those of this package, and those of the apps."""

from __future__ import annotations

from importlib import import_module

from django.utils.module_loading import autodiscover_modules


def load_checks() -> None:
    """Import the modules whose checks ``backend.kernel.doctor`` runs."""
    import_module("backend.operations.doctor")
    autodiscover_modules("doctor")
