"""The parts of a backfill."""
