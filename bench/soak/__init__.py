"""The service under load for a long time, and what it holds meanwhile."""
