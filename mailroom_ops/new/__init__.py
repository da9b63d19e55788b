"""`mailroom new`: the folder that a team owns."""
