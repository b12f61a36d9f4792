"""REST routes of functions, jobs and webhooks: decode, call, encode."""
