"""Files: uploads, their storage, who may read them, links to them, and clean-up.

``service`` is the one entrance: views and other code call nothing else here. A file's bytes are in
Django's storage ``files``, its record in the table of ``StoredFile``. Bytes without a record can't
happen, because the record is written first and removed last.
"""
