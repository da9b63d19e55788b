"""The commands that begin: `new` makes a folder, `init` a stage; and `docs`, `schema` and `webhook-key`."""
