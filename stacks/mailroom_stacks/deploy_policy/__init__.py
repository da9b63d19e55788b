"""What CloudFormation needs to deploy a stage, as IAM policies that are made from its own templates: for
`cdk bootstrap --cloudformation-execution-policies`, in place of AdministratorAccess."""
