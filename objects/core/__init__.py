"""The language of objects in plain Python: no Django, no I/O.

Queries, updates, schemas, pipelines and access decisions mean here what they mean everywhere;
``objects.sql`` implements the same semantics in SQL; property tests compare both.
"""
