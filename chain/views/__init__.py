"""REST routes of the chain app, for the master key."""
