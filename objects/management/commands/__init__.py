"""Each command parses its arguments and calls the packages of ``objects``."""
