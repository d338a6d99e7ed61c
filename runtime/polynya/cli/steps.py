"""How the steps of a transform are restricted to what changed, as far as the catalog tells."""

from __future__ import annotations

from polynya.cli.flow import compiled, derived_inputs
from polynya.derived.affected import plan_of
from polynya.derived.plans import OF_REGISTERED, FullPlan, Plan
from polynya.derived.tables import parsed_query
from polynya.lake.spark.catalog import has_tables
from polynya.model.config.derived import DerivedTask
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject


def step_plan(project: LoadedProject, task: DerivedTask, dataset: str) -> Plan | None:
    """The plan of the steps of one table; None while one of its inputs has no columns yet."""
    query = task.query_of(dataset)
    if query.incremental == "full":
        return FullPlan("`incremental: full`")
    if not has_tables(project.target):
        return None
    known = derived_inputs(project, task, with_history=not query.flow)
    try:
        text = compiled(project, task, dataset, known).sql if query.flow else query.text
        parsed = parsed_query(text, dataset)
    except PolynyaError:
        # `validate` and the step say what is wrong with it.
        return None
    inputs = {}
    for name in parsed.names:
        found = [
            table
            for full, table in known.items()
            if name.lower() in {full.lower(), full.lower().rpartition(".")[2]}
        ]
        if len(found) != 1 or found[0] is None:
            return None
        inputs[name] = found[0]
    registered = {one.relations.current for read in task.registered for one in read.datasets()}
    if query.incremental == "strict" and registered & {table.name for table in inputs.values()}:
        return OF_REGISTERED
    (keys,) = (one.keys for one in task.datasets if one.name == dataset)
    return plan_of(parsed, inputs, keys or ())
