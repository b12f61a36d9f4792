"""Requests as they arrive: heads to a WSGI environment, bodies to memory or a file."""
