"""The bench: figures of docs/measured.md, each with its baseline measured in the same run."""
