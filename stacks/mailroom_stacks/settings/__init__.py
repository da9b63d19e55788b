"""Settings of a stage, from `cdk.json`: context `mailroom`, then the name of the stage. Each file has one
section, with its model, the numbers derived from it, and its rules."""
