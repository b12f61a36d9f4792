"""Access lists, class-level permissions, and the reasons of decisions."""
