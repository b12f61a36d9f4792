"""Shapes of queries, and which index would serve them."""
