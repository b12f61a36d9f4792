"""Schemas: the fields of a class, what follows from a write, and requested changes."""
