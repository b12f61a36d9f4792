"""Management commands for the instance as a whole."""
