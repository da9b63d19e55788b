"""Permissions that CloudFormation needs to deploy a stage, as IAM policies derived from the stage's
templates. They replace AdministratorAccess in `cdk bootstrap --cloudformation-execution-policies`."""
