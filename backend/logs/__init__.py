"""Structured logs: one line for one event, and the store that the admin's log view reads.

``setup.get_logger`` is all that most modules need.
"""
