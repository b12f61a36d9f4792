"""Continuous archiving of the embedded PostgreSQL's WAL, and the restore of any moment from it.

``catalog`` names what is stored and chooses what a restore needs and what can go; it does no I/O.
``log`` stores the WAL, ``bases`` copies of the cluster, ``uploads`` files; ``process`` runs the
three. ``recovery`` makes an instance of what they have stored. ``backend.instance.wal_archive`` is
the state of it, for those who ask.

Names in the place, below ``wal/INSTANCE/``::

    LINEAGE/begun                       the lineage exists
    LINEAGE/log/START-END-UNTIL         WAL from one position to another, compressed: everything
                                        that was committed until then is before its end
    LINEAGE/base/START.tar.gz           the cluster, as pg_basebackup writes it
    LINEAGE/base/START-END-FINISHED     that copy is complete; its keys and its major
    files/DIGEST                        an uploaded file

A lineage is WAL without a gap, written by one cluster. An instance begins another one when WAL was
given up, after an upgrade of PostgreSQL, and for another place or key. A data folder is an
instance: what was restored elsewhere writes below a name of its own.
"""
