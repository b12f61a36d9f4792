"""The grid of a class's objects: its page, rows, edits in cells, filters and stored layouts."""
