"""What the realtime parts mean by their words: plain Python, without I/O."""
