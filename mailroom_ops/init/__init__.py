"""`init`: the section of a stage in cdk.json, asked for and written."""
