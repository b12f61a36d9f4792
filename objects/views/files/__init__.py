"""REST routes of files: uploads in three forms, downloads with ranges."""
