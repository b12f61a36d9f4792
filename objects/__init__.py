"""Objects: generic classes in PostgreSQL under access lists and class-level permissions.

``service`` is the one door to objects. ``docs/architecture.md`` draws the rooms below it.
"""
