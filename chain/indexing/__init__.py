"""Contract events, indexed exactly once through reorganisations.

``head`` follows the newest block, ``history`` fills in what is older, ``storage`` writes events and
the outbox, ``verification`` checks what providers say, ``repair`` compares and corrects.
"""
