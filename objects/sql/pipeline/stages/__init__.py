"""The SQL of the stages: one class each, in the module of the stage's name."""
