"""Classes: their list, their fields, indexes and permissions."""
