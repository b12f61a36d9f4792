"""Events that apps report (``/events``), stored for a while and counted."""
