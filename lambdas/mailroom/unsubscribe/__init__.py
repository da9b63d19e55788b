"""The page behind the link of a mail, by which people opt out of a topic."""
