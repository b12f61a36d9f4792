"""Emails with links: when they are sent, their tokens, their texts, what a link does."""
