"""Moving an app from a Parse Server: read what it has stored, store it here, and compare.

``sources`` read a Parse Server (over REST, from its PostgreSQL database, or from exported files),
``formats`` turn what they read into ``StoredObject``, and the modules here store it, so that a
stopped import continues where it was (``docs/migrate-from-parse.md``).
"""
