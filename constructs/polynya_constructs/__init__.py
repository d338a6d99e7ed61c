"""Reusable AWS CDK constructs of Polynya; the stacks in `stacks/` only wire them together."""
