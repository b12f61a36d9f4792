"""The operators of expressions: one class each. ``registry`` lists them."""
