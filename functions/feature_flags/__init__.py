"""Feature flags: which features there are for whom."""
