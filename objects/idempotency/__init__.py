"""Stored responses of requests that carry an id and may be repeated (``docs/idempotency.md``)."""
