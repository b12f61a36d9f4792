"""Learned indexes: built automatically for the queries that a class gets (docs/indexes.md)."""
