"""Sockets: events and live queries."""
