"""Clients of PostgreSQL and Redis with their own time limits, and which errors mean an outage."""
