"""RATE_LIMITS in the environment."""

from __future__ import annotations

import pytest

from tests.backend.operations.service import run_manage
from tests.conftest import KEYS


def read(value: str) -> tuple[int, str]:
    """Status and last line of a command that starts with this setting."""
    code = "from backend.limits import rules_for; print(len(rules_for('/login', 'POST')))"
    done = run_manage("shell", "-v0", "-c", code, **KEYS, RATE_LIMITS=value)
    return done.returncode, (done.stdout + done.stderr).strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("value", "rules"),
    [
        ("", "7"),
        ("defaults", "7"),
        ('["guesses"]', "3"),
        ("off", "0"),
        ('[{"path": "/login", "per": "ip", "count": 5, "window": 60}]', "1"),
        ('["defaults", {"path": "/*", "per": "ip", "count": 100, "window": 1}]', "8"),
    ],
)
@pytest.mark.slow
def test_the_environment_says_what_is_limited(value, rules):
    assert read(value) == (0, rules)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("on", "RATE_LIMITS must be off, defaults or a JSON list of rules."),
        ("[5]", 'RATE_LIMITS[0] must be an object, "defaults", "guesses" or "floods".'),
        ('[{"path": "/a", "per": "ip", "count": 5}]', "RATE_LIMITS[0].window is missing"),
    ],
)
def test_a_rule_that_is_not_understood_ends_the_start(value, message):
    status, line = read(value)
    assert status == 1
    assert line.startswith(message)
