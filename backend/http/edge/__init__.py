"""Where REST requests leave Django's way: hosts, paths, and the route of a request."""
