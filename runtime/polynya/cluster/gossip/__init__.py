"""The workload stream: heartbeats, hints, and each node's picture of the others.

Gossip is advisory. A record that is lost, late, duplicated or wrong changes latency, never results.
"""
