"""One connection of a client: its parser, its states, its deadlines, and the order of responses."""
