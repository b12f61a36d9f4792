"""Django's request for environments whose headers are not checked.

Django parses the parameters of ``Content-Type`` when it creates a request, outside of its error
handling, and decodes the query string with their ``charset``. An encoding that isn't one of text,
or invalid RFC 2231 parameters, end in an exception. This request is always UTF-8, and only form
parsing reads the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.handlers.wsgi import LimitedStream, WSGIRequest
from django.http.multipartparser import MultiPartParserError


class Utf8Request(WSGIRequest):
    """A request that any environment can create, decoded as UTF-8."""

    def __init__(self, environ: dict[str, Any]) -> None:
        path = environ.get("PATH_INFO", "")
        if path[:1] != "/" or not path.isascii() or _has_script_name(environ):
            super().__init__(environ)
            return
        # What Django's method does where there is nothing to decode, in half of its time.
        self.environ = self.META = environ
        self.path_info = self.path = path
        environ["SCRIPT_NAME"] = ""
        self.method = environ["REQUEST_METHOD"].upper()
        self._set_content_type_params(environ)
        try:
            length = int(environ.get("CONTENT_LENGTH") or 0)
        except ValueError:
            length = 0
        self._stream = LimitedStream(environ["wsgi.input"], length)  # type: ignore[assignment]
        self._read_started = False
        self.resolver_match = None

    def _set_content_type_params(self, meta: Mapping[str, Any]) -> None:
        self.content_type = str(meta.get("CONTENT_TYPE") or "").partition(";")[0].strip().lower()
        self.content_params = {}

    def parse_file_upload(self, META: Mapping[str, Any], post_data: Any) -> Any:
        """Return a form's fields and files, or raise ``MultiPartParserError``."""
        try:
            return super().parse_file_upload(META, post_data)
        except ValueError as error:
            raise MultiPartParserError("The Content-Type can't be read.") from error


def _has_script_name(environ: Mapping[str, Any]) -> bool:
    """Whether the application could be mounted below a path, as Django finds it out."""
    return (
        bool(environ.get("SCRIPT_NAME") or environ.get("SCRIPT_URL") or environ.get("REDIRECT_URL"))
        or settings.FORCE_SCRIPT_NAME is not None
    )
