"""Regular expressions with one meaning in Python and in PostgreSQL, and limits on their size."""
