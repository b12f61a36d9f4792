"""Celery's surroundings: sending tasks without waiting for Redis, and the schedule's lock."""
