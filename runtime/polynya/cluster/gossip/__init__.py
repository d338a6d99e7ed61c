"""What nodes tell each other by the workload stream: heartbeats, hints, the picture of the others.

Advisory: a record that is lost, late, twice there or wrong changes latency, never what is done.
"""
