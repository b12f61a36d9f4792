"""What every app stands on: errors, principals, the request under way, limits on memory.

It imports no app and no HTTP. Put something here only if two apps need it.
"""
