"""Which classes there are: their tables, models, schemas in memory, and declared indexes."""
