"""Backups that the service makes: their history, and what operators have to know of it."""
