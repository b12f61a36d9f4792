"""Models of runs and schedules. Only ``records`` writes the table of runs."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django_celery_beat.models import PeriodicTask

from objects.database.fresh_rows import ANY_NUMBER
from objects.definitions.columns import moment_column, text_column
from objects.definitions.models import ModelBackedObject

QUEUED, RUNNING, SUCCEEDED, FAILED = "queued", "running", "succeeded", "failed"


class JobStatus(ModelBackedObject):
    """``_JobStatus``: a run of a job, from the moment it is queued.

    ``attempt`` counts the workers that claimed it; each update names its attempt.
    An ``exclusive`` run doesn't overlap with another one of the same job. ``occasion`` is the tick
    of a schedule, which starts at most one run. ``published_at`` is when it was last published to
    workers.
    """

    fresh_rows = ANY_NUMBER

    job_name = text_column()
    source = text_column()
    status = text_column()
    message = text_column()
    error = text_column()
    params = models.JSONField(null=True, blank=True)
    attempt = models.IntegerField(default=0)
    skipped = models.IntegerField(default=0)
    started_at = moment_column()
    heartbeat_at = moment_column()
    finished_at = moment_column()
    exclusive = models.BooleanField(default=True)
    occasion = text_column(unique=True)
    request_id = text_column()
    published_at = moment_column()

    class Meta:
        db_table = "functions_job_status"
        ordering = ("-created_at",)
        verbose_name = "job run"
        verbose_name_plural = "job runs"
        constraints = (
            models.UniqueConstraint(
                fields=("job_name",),
                condition=Q(exclusive=True, status__in=(QUEUED, RUNNING)),
                name="functions_job_status_alone",
            ),
        )
        indexes = (
            models.Index(fields=("created_at",), name="functions_job_status_age"),
            models.Index(
                fields=("status",),
                condition=Q(status__in=(QUEUED, RUNNING)),
                name="functions_job_status_open",
            ),
            models.Index(
                fields=("finished_at",),
                condition=Q(status=FAILED),
                name="functions_job_status_failed",
            ),
        )

    def __str__(self) -> str:
        return f"{self.job_name} {self.object_id}"


class JobSchedule(PeriodicTask):
    """A proxy of the rows of beat that start jobs, with a separate name for staff."""

    class Meta:
        proxy = True
        verbose_name = "job schedule"
        verbose_name_plural = "job schedules"

    def __str__(self) -> str:
        return str(self.name)
