"""The command ``python -m backend.embedded`` that ``script/server`` runs."""
