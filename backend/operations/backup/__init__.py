"""The whole instance as one file, and back: database, files, keys.

``creation`` writes an archive, ``archive.check`` reads all of one, ``restore`` makes an instance of
it. ``archive`` knows the format of the file, ``postgres`` dumps a database and loads it again in
one transaction, ``files`` does the same with the file storage.
"""
