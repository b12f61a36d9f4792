"""The event channel ``/ws``: contract events as they are indexed, and those a client has missed.

``pump`` reads the outbox of the chain app and sends new events to all connections at once;
``catch_up`` sends one connection what it has missed, from ``pages`` that connections share.
"""
