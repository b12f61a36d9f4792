"""The SQL of operators of expressions: one class each, in the module of the operator's name."""
