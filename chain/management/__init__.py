"""Management commands for networks and their contracts."""
