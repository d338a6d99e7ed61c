"""What an import has made so far: files, names, and the lines of its report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from polynya.model.error_catalogue.qlik import (
    EXPRESSION_NOT_TRANSLATED,
    NAME_CHANGED,
    NO_EQUAL,
    SECRET_LEFT_OUT,
    SOURCE_UNREADABLE,
    TASK_NOT_TRANSLATED,
    UNKNOWN_SETTING,
)
from polynya.observe.events import counted
from polynya.qlik.documents import QlikDocument, QlikValue
from polynya.qlik.output import OwnReference, identifier, yaml_file
from polynya.qlik.report import ImportReport, Verdict
from polynya.qlik.settings import DocumentKind, QlikSetting, setting_of

#: Words in the types of connections, and the database of each. The first that fits counts.
_DATABASES: Final = {
    "mariadb": "mariadb", "mysql": "mysql", "postgres": "postgresql", "aurora": "postgresql",
    "sqlserver": "sqlserver", "mssql": "sqlserver", "oracle": "oracle", "db2": "db2",
    "mongodb": "mongodb",
}  # fmt: skip
_SECRETS: Final = ("password", "secret", "token", "passphrase", "private_key", "access_key")


@dataclass(slots=True)
class Translation:
    """Files of the project that an import makes, with its report.

    Attributes:
        name: the name of the project.
        tasks: the content and the comments of each task file, by the name of the task.
        sources: the place in the export of each task.
        connections: those of each connection file, by the name of the connection.
        automations: those of each automation file, by the name of the task that it runs.
    """

    name: str = "imported"
    report: ImportReport = field(default_factory=ImportReport)
    tasks: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = field(default_factory=dict)
    sources: dict[str, tuple[str, str]] = field(default_factory=dict)
    connections: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = field(default_factory=dict)
    automations: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)

    def named(self, text: str, where: str, owner: str, *, unique: bool = False) -> str:
        """The nearest usable name for a text; a line says so if it is another one."""
        name = identifier(text)
        if unique:
            base, number = name, 2
            while name.lower() in self._names:
                name, number = f"{base}_{number}", number + 1
            self._names.add(name.lower())
        if name != text:
            self.report.add(
                owner, "differs", where, text, f"is named {name}", code=NAME_CHANGED.code
            )
        return name

    def add_task(self, content: dict[str, Any], owner: str, where: str, *comments: str) -> None:
        """Add a task file."""
        self.tasks[content["name"]] = (content, comments)
        self.sources[content["name"]] = (owner, where)
        self.report.add(owner, "translated", where, "task", f"tasks/{content['name']}.yml")

    def connection(self, text: str, type_: str, owner: str, where: str, **known: Any) -> str:
        """Add a connection to a database, with references instead of a login; return its name."""
        name = identifier(text)
        if name in self.connections:
            return name
        variable = name.upper()
        content: dict[str, Any] = {
            "type": type_,
            "host": OwnReference(f"${{var:{variable}_HOST:-host.invalid}}"),
            "database": OwnReference(f"${{var:{variable}_DATABASE:-unknown}}"),
            "user": OwnReference(f"${{var:{variable}_USER:-unknown}}"),
            **known,
            "password": {"env": f"{variable}_PASSWORD"},
        }
        todo = f"bind the variables in bindings/local.yml, and set {variable}_PASSWORD"
        self.connections[name] = (content, (f"From {where}", todo))
        self.report.add(
            owner, "differs", where, f"connection {text}",
            f"connections/{name}.yml, with references instead of address and login",
            todo=todo, code=SECRET_LEFT_OUT.code,
        )  # fmt: skip
        return name

    def lose(self, value: QlikValue, owner: str, why: str, todo: str = "", code: str = "") -> None:
        """Name a value as a loss, with all that is in it."""
        for leaf in value.leaves():
            if not leaf.told:
                leaf.told = True
                self.report.add(
                    owner, "lost", leaf.where, leaf.name, why, todo=todo,
                    code=code or NO_EQUAL.code,
                )  # fmt: skip

    def lose_task(self, owner: str, where: str, why: str, todo: str = "") -> None:
        """Name a task as a loss; its settings follow when its documents are swept."""
        self.report.add(owner, "lost", where, "task", why, todo=todo, code=TASK_NOT_TRANSLATED.code)

    def lose_expression(self, value: QlikValue, owner: str, why: str, text: str) -> None:
        """Name an expression as a loss."""
        value.told = True
        self.report.add(
            owner, "lost", value.where, f"{value.name}: {text}", why,
            todo="write it by hand, and try it with `polynya preview`",
            code=EXPRESSION_NOT_TRANSLATED.code,
        )  # fmt: skip

    def sweep(
        self, document: QlikDocument, kind: DocumentKind, owner: str, *, translated: bool = True
    ) -> None:
        """Give each value of a document its line: nothing is left without one.

        Args:
            document: the document.
            kind: what it is.
            owner: the object of the lines.
            translated: whether its task was; if not, all that it says is lost.
        """
        for fault in document.faults:
            self.report.add(
                owner, "lost", fault.where or document.file, "file", fault.message,
                code=SOURCE_UNREADABLE.code,
            )  # fmt: skip
        identities = 0
        for leaf in document.root.leaves():
            if leaf.path and not leaf.told:
                leaf.used = leaf.used and translated
                identities += self._line(leaf, setting_of(kind, leaf.path), owner)
        if identities:
            self.report.add(
                owner, "translated", document.file, counted(identities, "key"),
                "only identify or describe the object inside Qlik",
            )  # fmt: skip

    def _line(self, leaf: QlikValue, setting: QlikSetting | None, owner: str) -> bool:
        """Add the line of a value; True, and no line, for one that only identifies."""
        verdict: Verdict = "lost"
        if any(word in str(leaf.path[-1]).lower() for word in _SECRETS):
            why, code = "a login is not copied", SECRET_LEFT_OUT.code
            todo = "set the reference of the connection"
        elif setting is None:
            why, todo, code = "the import does not know this key", "", UNKNOWN_SETTING.code
        elif setting.identifies:
            return True
        elif leaf.used and setting.verdict == "lost":
            verdict, why, todo, code = "translated", "its value is the default", "", ""
        elif leaf.used:
            verdict, why, todo, code = setting.verdict, setting.becomes, setting.todo, ""
        elif leaf.is_empty:
            verdict, why, todo, code = "translated", "empty", "", ""
        else:
            why = setting.becomes
            if setting.verdict != "lost":
                why = f"not translated here; elsewhere {why}"
            todo, code = setting.todo, NO_EQUAL.code
        self.report.add(owner, verdict, leaf.where, leaf.name, why, todo=todo, code=code)
        return False

    def files(self) -> dict[str, str]:
        """The files of the project by their path."""
        project = {
            "apiVersion": "polynya/v1", "kind": "project", "name": self.name,
            "targets": {"local": {"landing": "./landing", "warehouse": "./warehouse"}},
        }  # fmt: skip
        files = {"polynya.yml": yaml_file(project, "Made by `polynya import --from qlik`.")}
        for name, (content, comments) in self.tasks.items():
            files[f"tasks/{name}.yml"] = yaml_file(content, *comments)
        for name, (content, comments) in self.connections.items():
            files[f"connections/{name}.yml"] = yaml_file(content, *comments)
        for name, (content, comments) in self.automations.items():
            # The check of the project may have refused its task.
            if name in self.tasks:
                files[f"automations/{name}.yml"] = yaml_file(content, *comments)
        return files


def database_type(text: str) -> str | None:
    """The type of a connection of Polynya for one of Qlik, None for no database."""
    plain = text.lower().replace("_", "").replace(" ", "")
    return next((kind for word, kind in _DATABASES.items() if word in plain), None)
