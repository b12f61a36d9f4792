"""``script/attack``: what a service still does for its clients while others attack it."""
