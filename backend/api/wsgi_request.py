"""Django's request for environments whose headers are not checked.

Django parses the parameters of ``Content-Type`` when it creates a request, outside of its error
handling, and decodes the query string with their ``charset``. An encoding that isn't one of text,
or invalid RFC 2231 parameters, end in an exception. This request is always UTF-8, and only form
parsing reads the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.handlers.wsgi import WSGIRequest
from django.http.multipartparser import MultiPartParserError


class Utf8Request(WSGIRequest):
    """A request that any environment can create, decoded as UTF-8."""

    def _set_content_type_params(self, meta: Mapping[str, Any]) -> None:
        self.content_type = str(meta.get("CONTENT_TYPE") or "").partition(";")[0].strip().lower()
        self.content_params = {}

    def parse_file_upload(self, META: Mapping[str, Any], post_data: Any) -> Any:
        """Return a form's fields and files, or raise ``MultiPartParserError``."""
        try:
            return super().parse_file_upload(META, post_data)
        except ValueError as error:
            raise MultiPartParserError("The Content-Type can't be read.") from error
