"""The query operators: one class each. ``registry`` lists them."""
