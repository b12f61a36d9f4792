"""The keys of an instance: where each comes from, and giving it new ones."""
