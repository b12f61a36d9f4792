"""Rate limits, for every transport (``docs/rate-limits.md``).

A transport asks two questions, and only the second one costs anything:

- ``rules_for(path, method)`` returns the rules of the setting ``RATE_LIMITS`` that apply to a
  request. Most requests have none.
- ``decide(requests)`` counts them, in one step for all callers of all processes, and returns for
  each whether it passes. It never waits long and never raises: without Redis everything passes,
  except what a rule refuses in that case.

Paths are below the mount path, in the form by which the route was chosen. A function is
``/functions/NAME`` and a job ``/jobs/NAME`` wherever the call comes from. Callers with a master
key are counted only by rules that name it.
"""

from __future__ import annotations

from backend.limits.decisions import (
    FREE,
    Quota,
    Request,
    TooManyRequests,
    Verdict,
    decide,
    decide_here,
    rules_for,
)

__all__ = [
    "FREE",
    "Quota",
    "Request",
    "TooManyRequests",
    "Verdict",
    "decide",
    "decide_here",
    "rules_for",
]
