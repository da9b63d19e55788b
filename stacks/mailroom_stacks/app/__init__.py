"""The CDK app: its settings checked, its stacks made, its assembly kept."""
