"""The SQL of query operators: one class each, in the module of the operator's name."""
