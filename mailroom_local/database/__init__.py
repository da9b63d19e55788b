"""The database that campaigns read: an embedded PostgreSQL, and the example campaign's people."""
