"""`polynya verify`: prove that the tables keep their promises."""

from __future__ import annotations

from dataclasses import asdict

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error


def verify(dataset: str | None = None, /, *, context: Context) -> int:
    """Check every table, or one, against the rules that must always hold.

    A record is in Current at most once and nothing newer is in Prior; the versions of a record
    neither overlap nor leave holes; keys match their hashes; every file of the snapshot exists;
    the row accounting adds up. If events are kept (`changes_retention`), the versions equal the
    fold of their events, row by row. Reads one snapshot of each table and writes nothing. Exit code
    1 when a rule does not hold.

    For example: `polynya verify shop.users`.

    Args:
        dataset: `schema.name`. Default: all.
        context: given by `main`.
    """
    # Start-up time: pyspark.
    from polynya.engine.plan.inventory import inventory
    from polynya.engine.start import start_spark
    from polynya.lake.read.verify import verify as verify_table
    from polynya.lake.spark.catalog import python_catalog
    from polynya.lake.table.dataset import DatasetTable
    from polynya.lake.warehouse.reading import reading

    project = context.load(tolerant=True)
    entries = [
        entry
        for entry in inventory(project, python_catalog(project.target))
        if entry.table is not None and dataset in (None, entry.name)
    ]
    if dataset is not None and not entries:
        raise usage_error(f"there is no table of `{dataset}`", "`polynya status` lists them")
    with context.starting(project):
        spark = start_spark(project)
    healthy = True
    for entry in entries:
        with reading(project):
            verdict = verify_table(DatasetTable.existing(spark, entry.dataset))
        findings = verdict.findings
        healthy = healthy and not findings
        data = {
            "dataset": entry.name,
            "ok": not findings,
            "rules": verdict.rules,
            "findings": [asdict(finding) for finding in findings],
            "unchecked": verdict.unchecked,
        }
        state = "sound" if not findings else "BROKEN"
        lines = [f"{entry.name}: {state}, {len(verdict.rules)} rules"]
        lines += [
            f"  {finding.rule}: not true that {finding.says}: {finding.count:,}, "
            f"for example {finding.example}"
            for finding in findings
        ]
        lines += [f"  not checked: {text}" for text in verdict.unchecked]
        context.output.result("dataset.verified", data, "\n".join(lines))
    return ExitCode.OK if healthy else ExitCode.FAILED
