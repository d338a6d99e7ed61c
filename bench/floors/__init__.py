"""The floors of speed: what Polynya takes, beside what people write by hand, in one run.

`make bench-floors` prints them as one table, `python -m bench.floors --help` has the sizes.
"""
