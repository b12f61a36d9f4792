"""The declarations of all settings, one class for each area: defaults, bounds, documentation."""
