"""Database that campaigns read in the local stage: an embedded PostgreSQL, and the people of the example
campaign."""
