"""Libraries for browsers that are stored with the code: where each is from, and that nothing in it
was changed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from backend.settings.areas.processes import BASE_DIR

VENDOR = Path(BASE_DIR) / "backend/static/backend/vendor"
LICENCES = {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC"}
OWN = {"LICENSE", "NOTICE", "origin.json"}


def origin(library: Path) -> dict[str, Any]:
    return dict(json.loads((library / "origin.json").read_text()))


def libraries() -> list[Path]:
    paths = sorted(VENDOR.glob("*"))
    assert [path.name for path in paths if not path.is_dir()] == []
    return paths


def test_each_library_says_where_it_is_from() -> None:
    for library in libraries():
        written = origin(library)
        lacking = {"package", "version", "licence", "files"} - {k for k, v in written.items() if v}
        assert not lacking, f"{library.name}/origin.json has no {lacking}"
        assert written["licence"] in LICENCES, library.name
        assert len((library / "LICENSE").read_text()) > 500, library.name


def test_each_library_is_what_its_package_has() -> None:
    for library in libraries():
        files = {
            str(path.relative_to(library)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in library.rglob("*")
            if path.is_file() and path.name not in OWN
        }
        assert files == origin(library)["files"], library.name
