"""The CloudFormation stacks of Polynya, one file per stack."""
