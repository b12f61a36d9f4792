"""The service's settings, and an application that offers a model of its own as a class."""

from backend.settings.django import *  # noqa: F403
from backend.settings.django import INSTALLED_APPS as _APPLICATIONS
from backend.settings.django import PASSWORD_HASHERS as _HASHERS

INSTALLED_APPS = [*_APPLICATIONS, "tests.catalogue"]
PASSWORD_HASHERS = ["tests.password_hashers.Quick", *_HASHERS[1:]]
# Static files are looked for when they are asked for: every test client loads the middleware again,
# and listing the files is ten times as long as a request.
WHITENOISE_AUTOREFRESH = True
