"""Why a caller may or may not do something, in sentences."""
