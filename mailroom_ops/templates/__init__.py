"""Templates: rendered with their examples, and published as versions."""
