"""Functions and triggers that run on the server."""
