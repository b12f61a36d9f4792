"""The service's settings, and an application that offers a model of its own as a class."""

from backend.settings import *  # noqa: F403
from backend.settings import INSTALLED_APPS as _APPLICATIONS

INSTALLED_APPS = [*_APPLICATIONS, "tests.catalogue"]
