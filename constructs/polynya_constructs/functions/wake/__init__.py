"""Acts on what lands or waits: wakes a group, tells nodes. All but `probe` need boto3 at most."""
