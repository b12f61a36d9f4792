"""Texts from clients: spelling, secrets in them, and how error messages show them."""
