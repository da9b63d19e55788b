"""The CDK app: it validates settings, builds the stacks, and caches assemblies."""
