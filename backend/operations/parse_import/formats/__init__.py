"""The forms in which a Parse Server stores and exports objects and classes, as plain Python."""
