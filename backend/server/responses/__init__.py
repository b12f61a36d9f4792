"""Responses as they leave: heads, compression, and long bodies piece by piece."""
