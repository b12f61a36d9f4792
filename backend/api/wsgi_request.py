"""Django's request, for the bytes of anybody.

Django reads the parameters of Content-Type when it makes a request, before anything handles
errors, and decodes the query string as the ``charset`` among them says: an encoding that isn't one
of texts, or parameters as RFC 2231 has them in an unknown one, end in an exception. Here requests
are UTF-8 whatever they say, and only who takes a form looks at the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.handlers.wsgi import WSGIRequest
from django.http.multipartparser import MultiPartParserError


class Utf8Request(WSGIRequest):
    """A request that can be made of any environment, and is read as UTF-8."""

    def _set_content_type_params(self, meta: Mapping[str, Any]) -> None:
        self.content_type = str(meta.get("CONTENT_TYPE") or "").partition(";")[0].strip().lower()
        self.content_params = {}

    def parse_file_upload(self, META: Mapping[str, Any], post_data: Any) -> Any:
        """The fields and files of a form; raises ``MultiPartParserError`` for bad parameters."""
        try:
            return super().parse_file_upload(META, post_data)
        except ValueError as error:
            raise MultiPartParserError("The Content-Type can't be read.") from error
