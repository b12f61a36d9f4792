"""Update operators and plain values of a write, and what they make of an object."""
