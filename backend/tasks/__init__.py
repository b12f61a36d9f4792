"""Celery's surroundings: sending tasks, lanes of workers, and the lock of the schedule."""
