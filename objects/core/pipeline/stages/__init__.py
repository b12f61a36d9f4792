"""The stages of pipelines: one class each. ``registry`` lists them."""
