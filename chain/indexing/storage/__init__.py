"""Events and the outbox in PostgreSQL: written exactly once, read in order, pruned."""
