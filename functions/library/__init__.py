"""The functions that the service itself brings."""
