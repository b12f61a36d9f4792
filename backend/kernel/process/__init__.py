"""What one process has: heartbeats, children, exit hooks, garbage collection."""
