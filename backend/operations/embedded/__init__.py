"""PostgreSQL, Redis and Caddy from their wheels, for a machine that has none of them.

``python -m backend.embedded`` is what ``script/server`` runs: it starts the engines and every
process of the Procfile, and ends all of them together. Nothing in this package imports Django,
so that the settings may ask it where the engines are.
"""
