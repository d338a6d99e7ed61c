"""`polynya connection test`: whether a database can be captured, line by line."""

from __future__ import annotations

from polynya.cli.context import Context, verb_app
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error
from polynya.model.documents.problems import suggest

app = verb_app("connection", "Connections to databases: test them.")


@app.command
def test(name: str, /, *, context: Context) -> int:
    """Check whether a database can be captured: network, TLS, rights, settings of the server.

    Each line is one check, with a fix if it fails. The checks cover what the tasks with this
    connection need, such as publication and slot, and less if all of them only load. Nothing
    changes in the database. Exit code 1 when a check fails, also when the database does not answer.

    For example: `polynya connection test shop_postgres`.

    Args:
        name: of a file in `connections/`, without its ending.
        context: given by `main`.
    """
    project = context.load(tolerant=True)
    for error in project.errors:
        if (error.where or "").startswith(f"connections/{name}."):
            context.output.error(error)
    if name not in project.connections:
        known = sorted(project.connections)
        raise usage_error(
            f"no connection is called `{name[:60]}`",
            suggest(name, known) if known else "add a file to `connections/`",
        )
    # Start-up time: drivers of databases.
    from polynya.engine.verbs.captures import findings_of

    findings = findings_of(project, name)
    for one in findings:
        data = {"connection": name, "ok": one.ok, "what": one.what, "fix": one.fix}
        fix = f"\n      fix: {one.fix}" if one.fix else ""
        mark = "FAIL" if not one.ok else "note" if one.fix else "ok  "
        context.output.result("connection.finding", data, f"{mark}  {one.what}{fix}")
    wrong = sum(not one.ok for one in findings)
    text = f"{name} can be captured" if not wrong else f"{wrong} of {len(findings)} are wrong"
    context.output.result("connection", {"connection": name, "ok": not wrong}, text)
    return ExitCode.FAILED if wrong else ExitCode.OK
