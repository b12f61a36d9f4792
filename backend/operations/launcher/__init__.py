"""``script/server``: from a data folder to a running service, and back."""
