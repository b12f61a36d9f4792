"""The event channel: what contracts say, told to whoever has opened ``/ws``.

``pump`` reads the outbox of the chain app and tells it to everybody at once; ``catching_up`` tells
a connection what it has missed, from ``pages`` of the outbox that connections share.
"""
