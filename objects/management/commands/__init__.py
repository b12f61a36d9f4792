"""Each command parses its arguments and calls the rooms of ``objects``."""
