"""``backend.settings.conf``: our own knobs as one lazy object."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from backend.settings.conf import DEFAULTS, service_settings


def test_a_knob_that_is_not_set_has_its_default():
    with override_settings(SERVICE={}):
        assert DEFAULTS["MAX_LIMIT"] == service_settings.MAX_LIMIT


def test_an_override_is_seen_at_once_and_gone_afterwards():
    before = service_settings.MAX_LIMIT
    with override_settings(SERVICE={"MAX_LIMIT": 7}):
        assert service_settings.MAX_LIMIT == 7
    assert before == service_settings.MAX_LIMIT


def test_an_unknown_knob_is_an_error():
    with (
        override_settings(SERVICE={"MAX_LIMTI": 7}),
        pytest.raises(ImproperlyConfigured, match="MAX_LIMTI"),
    ):
        assert service_settings.MAX_LIMIT
    with pytest.raises(AttributeError, match="MAX_LIMTI"):
        assert service_settings.MAX_LIMTI  # type: ignore[attr-defined]
