"""The aggregation pipeline as one SQL statement."""
