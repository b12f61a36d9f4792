"""Files, events and parameters of the app in the admin."""
