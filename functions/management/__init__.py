"""Management commands for jobs."""
