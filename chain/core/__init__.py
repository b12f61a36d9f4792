"""What the chain app knows without a node or a database: plain Python, no Django, no I/O."""
