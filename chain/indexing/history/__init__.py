"""Backfills: the events of blocks behind the head, by ranges of final blocks."""
