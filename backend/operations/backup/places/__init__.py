"""Where backups are stored: a folder or a bucket, encrypted with a key of the operator's.

``place`` is the interface; ``folder`` and ``bucket`` store bytes, ``encryption`` makes age files of
them. Nothing here needs Django, so programs that run before it or without it may use a place.
"""
