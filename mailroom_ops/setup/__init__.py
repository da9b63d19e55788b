"""Commands for the first steps: `new` makes a project folder, and `init` writes the settings of a stage. Also
`update`, `docs`, `schema` and `webhook-key`."""
