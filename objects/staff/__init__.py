"""Staff accounts: their second factor, and the gate that every page of the admin is behind."""
