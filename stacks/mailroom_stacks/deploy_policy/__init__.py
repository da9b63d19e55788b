"""Rights that CloudFormation needs to deploy a stage, as IAM policies made from the stage's templates: for
`cdk bootstrap --cloudformation-execution-policies`, in place of AdministratorAccess."""
