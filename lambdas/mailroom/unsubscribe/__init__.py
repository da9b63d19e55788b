"""The page behind an unsubscribe link."""
