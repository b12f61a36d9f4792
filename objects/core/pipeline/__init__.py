"""The aggregation pipeline: stages, expressions and projections, checked."""
