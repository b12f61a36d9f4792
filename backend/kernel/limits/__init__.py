"""Limits on what requests may hold: memory for results, and threads in slow statements."""
