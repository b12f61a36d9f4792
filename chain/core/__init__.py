"""What the chain app knows without asking anybody: plain Python, no Django, no network."""
