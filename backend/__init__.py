"""The project package: settings, the HTTP edge and what every app shares."""

__version__ = "0.1.0"
