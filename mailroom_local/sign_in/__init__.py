"""Sign-in of the local stage: an OpenID provider for tests, and the console behind it."""

RIGHTS = {"grace": "contents", "ada": "read", "eve": ""}
"""Right of each person who can sign in, which is also the person's group; empty for a person without one."""
