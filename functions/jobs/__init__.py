"""Jobs: work that a deployment has written, run by workers of their own, apart from requests.

``starting.start`` puts a run into the queue, as a row of ``_JobStatus``; the task carries nothing
but the row's id. ``running.execute`` claims the row in a worker and carries the job out;
``tending`` finds runs whose worker has died. ``schedules`` are what starts jobs by itself.

A run is carried out at most once, unless its job says that it bears more (``restart``).
"""
