"""Beat under a supervisor: ``python -m tests.backend.operations.supervised_beat FOLDER SILENCE``.

It looks at its schedule every second. Once there is a file ``FOLDER/hang``, the first look removes
it and never ends.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    folder, silence = Path(sys.argv[1]), float(sys.argv[2])
    os.environ |= {"DJANGO_SETTINGS_MODULE": "backend.settings.django", "PROCESS": "beat"}
    import django

    django.setup()
    from backend.celery import app
    from backend.operations.processes.roles import ROLES
    from backend.operations.processes.supervisor import Supervisor
    from backend.tasks.scheduler import Scheduler

    class HangingScheduler(Scheduler):
        def tick(self, *args: Any, **kwargs: Any) -> Any:
            trigger = folder / "hang"
            if trigger.exists():
                trigger.unlink()
                time.sleep(600)
            return super().tick(*args, **kwargs)

    app.conf.beat_max_loop_interval = 1
    app.conf.beat_scheduler = HangingScheduler
    work = Supervisor([ROLES["beat"]()], folder / "reports", silence=silence).run()
    if work is not None:
        work()


if __name__ == "__main__":
    main()
