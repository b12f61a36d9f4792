"""Who may do what: ``policy`` decides about objects, ``protection`` about fields of objects.

The decisions are made of the plain functions in ``objects.core.access``.
"""
