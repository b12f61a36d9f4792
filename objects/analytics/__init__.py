"""Events that apps report (``/events``), kept for a while and counted."""
