"""Each command parses its arguments and calls ``backend.operations``."""
