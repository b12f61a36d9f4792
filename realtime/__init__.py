"""Sockets: contract events (``/ws``) and live queries."""
