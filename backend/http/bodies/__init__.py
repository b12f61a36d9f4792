"""Request bodies and query strings: their limits, and strict JSON as plain values."""
