"""Committed changes of objects, each delivered once to every reader.

PostgreSQL captures the changes by triggers (``capture``), so every kind of write is included. Only
classes that a reader has requested are captured (``Reader.want``); a ``Reader`` reads what was
committed since its last read. Changes are stored for a minute or two: a reader that missed some
learns that (``Batch.gap``), and reads the objects again.
"""

from objects.changes.images import Change
from objects.changes.interest import WANTED_FOR
from objects.changes.reader import Batch, Reader
from objects.changes.retention import KEPT

__all__ = ["KEPT", "WANTED_FOR", "Batch", "Change", "Reader"]
