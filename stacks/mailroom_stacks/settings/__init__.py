"""Settings of a stage, in `cdk.json` under context `mailroom`, then the stage's name: one file a domain, with
its model, the numbers derived from it, and its rules."""
