"""People: users and how they sign in, sessions, roles, installations.

Their objects are ordinary ones, written through ``objects.service``; what these classes ask
beyond that is in ``rules``. Secrets (passwords, tokens, keys of second factors) are in tables of
their own, which no query of a client reaches.
"""
