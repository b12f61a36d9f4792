"""Who may do what: ``policy`` decides, and nothing else does.

The decisions are made of the plain functions in ``objects.core.access``.
"""
