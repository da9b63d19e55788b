"""Commands for the first steps: `new` makes a folder, `init` a stage; also `docs`, `schema`,
`webhook-key`."""
