"""How the service is doing: its figures of the last 30 days, the start page and the advisor."""
