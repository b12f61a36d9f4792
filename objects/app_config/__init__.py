"""Parameters that an app reads when it starts (``/config``)."""
