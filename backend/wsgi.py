"""The WSGI application: REST and the admin."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings.django")

_django = get_wsgi_application()

from backend.http.edge.rest import RestFirst  # noqa: E402 (needs Django's settings)
from backend.http.edge.wsgi_request import Utf8Request  # noqa: E402

_django.request_class = Utf8Request
application = RestFirst(_django)

# Every view is imported now: a fault in one shows at the start, and no request waits for it.
for urlconf in (None, "backend.rest_urls"):
    get_resolver(urlconf)._populate()
