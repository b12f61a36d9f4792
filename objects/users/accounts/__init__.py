"""Accounts: passwords, the second factor, lookups, and what owners see of themselves."""
