"""Blocks: hashes, receipts and bloom filters checked, forks found, finality computed."""
