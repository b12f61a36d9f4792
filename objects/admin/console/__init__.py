"""The console: requests to the API from a page, with the rights of a caller that staff choose."""

from __future__ import annotations

from objects.admin.console import pages, words  # noqa: F401 (register their pages)
