"""Objects in PostgreSQL: reads and writes, one round trip each.

Each statement checks the version of the class's definition, so no definition can be stale.
"""
