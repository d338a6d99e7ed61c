"""Random statements over random histories, by seeds or by Hypothesis."""

from __future__ import annotations

from random import Random

from polynya.query.translate import NotEmbeddedError
from tests.derived.queries import Statements
from tests.derived.shop import Counts, Tables, WrongResultError, follow, histories

BATCHES = 4
LONG_BATCHES = 8


def follow_random(
    random: Random, tables: Tables, counts: Counts, batches: int = BATCHES
) -> str | None:
    """Follow one statement over one history; the reason if it is computed as a whole."""
    sql = Statements(random).statement()
    return follow(sql, histories(random, batches), tables, counts)


def follow_seed(seed: int, tables: Tables, counts: Counts) -> str | None:
    """The same over a longer history, by a seed."""
    return follow_random(Random(seed), tables, counts, LONG_BATCHES)


def is_wrong(random: Random) -> bool:
    """Whether the result of what these random numbers make is wrong."""
    try:
        follow_random(random, Tables(), Counts())
    except WrongResultError:
        return True
    except NotEmbeddedError:
        pass
    return False


def shrunk(seed: int, *, examples: int = 20_000) -> str:
    """A small statement that goes wrong, looked for from a seed; the text of its error."""
    # Here, since it takes longer to import than many steps.
    from hypothesis import HealthCheck, Phase, find, settings
    from hypothesis import strategies as st

    random = find(
        st.randoms(use_true_random=False),
        is_wrong,
        settings=settings(
            max_examples=examples,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
        ),
        random=Random(seed),
    )
    try:
        follow_random(random, Tables(), Counts())
    except WrongResultError as wrong:
        return str(wrong)
    return "it went wrong once only"
