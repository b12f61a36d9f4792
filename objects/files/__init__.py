"""Files: uploads, their storage, who may read them, links to them, and clean-up.

``service`` is the door: views and other code call it, and nothing else here. A file's bytes are in
Django's storage ``files``, what is known about it in the table of ``StoredFile``. Bytes without a
row don't happen, because the row comes first and goes last.
"""
