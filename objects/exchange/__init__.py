"""Files of objects: reading rows, making objects of them, storing those, and writing them back.

What ``manage.py import_objects`` and ``export_objects`` are made of. Memory stays constant,
however large the file is.
"""
