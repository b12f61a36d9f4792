"""REST routes of objects, classes, users and batches: decode, call the service, encode."""
