"""Queries: from a ``where`` to the constraint tree, and what the tree means.

``parser`` builds ``tree``, ``predicate`` tests an object against it.
"""
