"""Triggers: the decorators, one call of a trigger, and triggers in the background."""
