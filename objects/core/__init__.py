"""The language of objects in plain Python: no Django, no I/O.

Queries, updates, schemas, pipelines and access decisions mean here what they mean everywhere;
``objects.sql`` says the same in SQL, and property tests hold both together.
"""
