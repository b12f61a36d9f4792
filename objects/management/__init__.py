"""Management commands for classes, objects, files and maintenance."""
