"""What ends a benchmark with one sentence instead of figures."""


class BenchFailure(Exception):
    """The message is for the person who ran the benchmark."""
