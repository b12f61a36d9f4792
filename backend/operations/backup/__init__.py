"""The whole instance as one file, and back: database, files, keys.

``making.make`` writes an archive, ``archive.check`` reads all of one, ``restoring.restore``
makes an instance of it. ``archive`` knows what the file looks like, ``postgres`` how a database
comes out of PostgreSQL and goes in again in one transaction, ``files`` the same of file storage.
"""
