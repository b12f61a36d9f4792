"""Where objects are read from: a Parse Server's API, its PostgreSQL database, or exported files."""
