"""Commands for the first steps: `init` writes the settings of a stage, and `update` updates a project folder.
Also `docs`, `schema` and `webhook-key`, and `python3 -m mailroom_ops.setup`, which makes the folder."""
