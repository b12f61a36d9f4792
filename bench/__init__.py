"""Benchmarks of the running service, alone or beside Parse Server. ``script/bench`` is the way in.

Nothing here is imported by the service, and nothing here is a test: a benchmark prints figures
and fails only when a server answers wrongly.
"""
