"""Messages, cursors and the index of subscriptions: plain Python, without I/O."""
