"""Answers that are given again to a request that is sent again (``docs/idempotency.md``)."""
