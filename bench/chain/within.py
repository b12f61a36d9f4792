"""``python -m bench.chain.within``: one contender in a process of its own. Reads its job as JSON
from the standard input and the service's settings from the environment; prints its figures as a
line of JSON."""

from __future__ import annotations

import json
import sys

from bench.chain import stage


def main() -> None:
    job = stage.Job(**json.load(sys.stdin))
    stage.begin()
    from bench.chain import following_blocks, ways

    known = {way.__name__: way for way in (*ways.WAYS, *following_blocks.WAYS)}
    print(json.dumps(known[job.way](job)))


if __name__ == "__main__":
    main()
