"""The service does what the document says: schemathesis makes requests of it, right and wrong
ones, and looks at each answer."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.config import (
    CoveragePhaseConfig,
    FuzzingPhaseConfig,
    GenerationConfig,
    PhasesConfig,
    ProjectConfig,
    ProjectsConfig,
    SchemathesisConfig,
)

from backend.wsgi import application
from tests.rest import MASTER

pytestmark = pytest.mark.django_db(transaction=True)

bounded = settings(
    max_examples=5,
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def api(master: Any) -> Any:
    master.make("Project", name="a", stars=1)
    return schemathesis.openapi.from_wsgi("/api/openapi.json", application, headers=MASTER)


lazy = schemathesis.pytest.from_fixture("api")


@lazy.parametrize()
@bounded
def test_as_master(case: Case) -> None:
    case.call_and_validate(headers=MASTER, excluded_checks=[schemathesis.checks.positive_data_acceptance])
