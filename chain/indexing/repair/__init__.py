"""Stored events compared with the chain, and corrected where they differ."""
