"""Sessions: ``gate`` admits, ``creation`` creates, ``tokens`` authenticates."""
