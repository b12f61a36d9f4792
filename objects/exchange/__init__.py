"""Imports and exports: rows of a file become objects, and objects become rows.

``manage.py import_objects`` and ``export_objects`` use it. Memory stays constant, however large the
file is.
"""
