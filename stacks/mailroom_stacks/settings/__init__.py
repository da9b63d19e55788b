"""Settings of a stage, from `cdk.json`: context `mailroom`, then the name of the stage. A file for each topic
has the models of the topic's sections, the numbers derived from them, and their rules."""
