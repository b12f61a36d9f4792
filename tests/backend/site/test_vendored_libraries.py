"""Libraries for browsers that are stored with the code: where each is from, and that nothing in it
was changed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from backend.settings.areas.processes import BASE_DIR

VENDOR = Path(BASE_DIR) / "backend/static/backend/vendor"
LICENCES = {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC"}
OWN = {"LICENSE", "NOTICE", "origin.json"}
LIBRARIES = sorted(path for path in VENDOR.glob("*") if path.is_dir())


def origin(library: Path) -> dict[str, Any]:
    return dict(json.loads((library / "origin.json").read_text()))


def test_the_folder_has_libraries_alone() -> None:
    assert [path.name for path in VENDOR.glob("*") if not path.is_dir()] == []


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)
def test_a_library_says_where_it_is_from(library: Path) -> None:
    written = origin(library)
    assert all(written[name] for name in ("package", "version", "licence", "files"))
    assert written["licence"] in LICENCES
    assert len((library / "LICENSE").read_text()) > 500


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)
def test_a_library_is_what_its_package_has(library: Path) -> None:
    files = {
        str(path.relative_to(library)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in library.rglob("*")
        if path.is_file() and path.name not in OWN
    }
    assert files == origin(library)["files"]
