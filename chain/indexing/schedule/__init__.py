"""When the head of a network is polled: by the clock, and when a node reports a new block."""
