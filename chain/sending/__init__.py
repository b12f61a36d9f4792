"""Transactions that the service signs and sends itself."""
