"""The compiled contracts are those of the sources."""

from __future__ import annotations

import hashlib
import json

from tests.evm.artefacts import FOLDER


def test_every_source_was_compiled_as_it_is() -> None:
    sources = FOLDER.parent / "contracts"
    results = {
        item.name: hashlib.sha256(item.read_bytes()).hexdigest() for item in sources.glob("*.sol")
    }
    assert results == json.loads((FOLDER / "sources.json").read_text()), "npm run compile"
