"""The floors of speed: Polynya next to hand-written Spark, in one run.

`make bench-floors` prints them as one table, `python -m bench.floors --help` has the sizes.
"""
