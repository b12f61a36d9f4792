"""What has become of objects: every committed change, once, for whoever shows it to others.

PostgreSQL itself captures the changes (triggers, see ``capture``), so it doesn't matter who writes,
or through what. Only classes that somebody wants are captured (``Reader.want``); a ``Reader`` reads
what has been committed since it read last. Nothing of this is kept for longer than a minute or
two: who has missed something is told that (``Batch.gap``), and reads the objects anew.
"""

from objects.changes.images import Change
from objects.changes.interest import WANTED_FOR
from objects.changes.reader import Batch, Reader
from objects.changes.retention import KEPT

__all__ = ["KEPT", "WANTED_FOR", "Batch", "Change", "Reader"]
