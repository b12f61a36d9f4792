"""Jobs: long work that a deployment has written, run by workers of their own.

``start.start`` queues a run as a row of ``_JobStatus``; the task carries only the row's id.
``runs.execute`` claims the row in a worker and runs the job; ``stuck_runs`` ends runs whose worker
has died. ``schedules`` start jobs automatically.

A run is executed at most once, unless its job allows more (``restart``).
"""
