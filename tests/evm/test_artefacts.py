"""The compiled contracts are those of the sources."""

from __future__ import annotations

import hashlib
import json

from tests.evm.artefacts import FOLDER


def test_every_source_was_compiled_as_it_is() -> None:
    sources = FOLDER.parent / "contracts"
    found = {
        one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in sources.glob("*.sol")
    }
    assert found == json.loads((FOLDER / "sources.json").read_text()), "npm run compile"
