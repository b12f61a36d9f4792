"""English, the language of the admin."""
