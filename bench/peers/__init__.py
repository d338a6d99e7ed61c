"""One apply, by Polynya and by the others, on the same files in one run.

`make bench-peers` prints a table; `python -m bench.peers --help` has the sizes. Each contender
works in a process of its own, so that Delta, Hudi and Paimon have the Spark and the jars that
they need. These are fetched on first use into the cache.
"""
