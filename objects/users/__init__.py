"""People: users and how they sign in, sessions, roles, installations.

Their objects are ordinary ones, written through ``objects.service``; ``rules`` has what these
classes require beyond that. Secrets (passwords, tokens, keys of second factors) are in tables that
no query of a client reaches.
"""
