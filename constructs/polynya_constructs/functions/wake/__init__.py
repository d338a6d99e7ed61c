"""Acts on objects that land: wakes a group, tells nodes. Standard library and boto3 only."""
