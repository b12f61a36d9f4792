"""One realtime process: admission of connections, its listener, its reports, its server."""
