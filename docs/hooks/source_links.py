"""A hook of MkDocs for links from a page to files of the repository outside ``docs/``.

With ``extra.source_url`` set, such as ``https://example.org/project/blob/main``, they lead there;
otherwise they become plain text.
A link to a file that doesn't exist is logged as a warning, which fails a strict build.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

log = logging.getLogger("mkdocs.hooks.source_links")
# The text of a link may be code: it is matched so that its second backtick begins no other code.
CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1|\[`[^`\n]+`\]|`[^`\n]+`", re.M | re.S)
LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<path>(?:\.\./)[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the page's text with its links to files outside ``docs/`` replaced."""
    documents = Path(config.docs_dir).resolve()
    root = documents.parent
    folder = (documents / page.file.src_uri).parent
    source_url = config.extra["source_url"].rstrip("/")

    def replace(match: re.Match[str]) -> str:
        target = (folder / match["path"]).resolve()
        if target.is_relative_to(documents):
            return match[0]
        if not target.is_relative_to(root) or not target.exists():
            log.warning("%s links to %s, which doesn't exist", page.file.src_uri, match["path"])
            return match[0]
        if not source_url:
            return match["text"]
        path = target.relative_to(root).as_posix()
        return f"[{match['text']}]({source_url}/{path}{match['anchor'] or ''})"

    parts = []
    end = 0
    for code in CODE.finditer(markdown):
        if code[0].startswith("["):
            continue
        parts += [LINK.sub(replace, markdown[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, LINK.sub(replace, markdown[end:])])
