"""Benchmarks of the sockets."""
