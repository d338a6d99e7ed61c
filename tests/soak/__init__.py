"""Whether tables that are fed for hours stay in shape: two runs, with maintenance and without.

`python -m tests.soak --help`. Files land for tables that change all the time, a reader asks their
live views, and files, metadata, steps and queries are measured until the end. With maintenance
these have to level off; without it they show what it saves. The feed, its freshness and the fold
that results are compared with are those of `tests.newcomer`.
"""
