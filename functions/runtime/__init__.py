"""Server code: what a deployment registers, and how it is called within limits.

``registry`` holds functions, triggers and jobs; ``runner`` calls them; ``request``, ``queries`` and
``values`` are what server code works with. The public names are those of ``functions`` itself.
"""
