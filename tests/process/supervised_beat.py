"""Beat under a supervisor: ``python -m tests.process.supervised_beat FOLDER SILENCE``.

It looks at its schedule every second. Once there is a file ``FOLDER/hang``, the first look removes
it and never ends.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import django

from backend.scheduler import Scheduler

FOLDER = Path(sys.argv[1]) if __name__ == "__main__" else Path()


class HangingScheduler(Scheduler):
    """The service's, which hangs on request."""

    def tick(self, *args: Any, **kwargs: Any) -> Any:
        trigger = FOLDER / "hang"
        if trigger.exists():
            trigger.unlink()
            time.sleep(600)
        return super().tick(*args, **kwargs)


def main() -> None:
    django.setup()
    from backend.celery import app
    from backend.processes.roles import ROLES
    from backend.processes.supervisor import Supervisor

    app.conf.beat_max_loop_interval = 1
    app.conf.beat_scheduler = HangingScheduler
    work = Supervisor([ROLES["beat"]()], FOLDER / "reports", silence=float(sys.argv[2])).run()
    if work is not None:
        work()


if __name__ == "__main__":
    main()
