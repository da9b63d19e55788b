"""The bench, which measures the figures of docs/reference/limits.md. Each baseline is measured in the same
run."""
