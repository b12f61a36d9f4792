"""Each command parses its arguments and calls ``functions.jobs``."""
