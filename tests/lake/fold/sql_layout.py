"""SQL laid out for people: the tokens of a statement as they are, only the white space is ours."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot.tokens import Tokenizer

WIDTH = 100
#: First words of what begins a line of its own in a query; joins begin with their kind.
CLAUSES = frozenset(
    {"WITH", "SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "LATERAL",
     "LEFT", "FULL", "JOIN", "ON"}
)  # fmt: skip
#: What goes on after `LEFT` or `FULL`.
JOINS = ("ANTI", "SEMI", "OUTER", "JOIN")


@dataclass
class Group:
    """What stands between two parentheses, a part of it, or the whole statement."""

    parts: list[str | Group] = field(default_factory=list)
    spaced: list[bool] = field(default_factory=list)

    def add(self, part: str | Group, spaced: bool) -> None:
        self.parts.append(part)
        self.spaced.append(spaced)

    def word(self, index: int = 0) -> str:
        """First word of a part: `ORDER` of `ORDER BY`."""
        part = self.parts[index]
        return part.split()[0] if isinstance(part, str) else "("

    @property
    def is_query(self) -> bool:
        return self.word() in ("SELECT", "WITH")

    @property
    def holds_query(self) -> bool:
        inner = (part for part in self.parts if isinstance(part, Group) and part.parts)
        return self.is_query or any(part.holds_query for part in inner)

    @property
    def flat(self) -> str:
        text = ""
        for index, (part, spaced) in enumerate(zip(self.parts, self.spaced, strict=True)):
            text += " " if spaced and index else ""
            text += part if isinstance(part, str) else f"({part.flat})"
        return text

    def fits(self, indent: int) -> bool:
        return not self.parts or (not self.holds_query and indent + len(self.flat) <= WIDTH)

    def split(
        self, starts: tuple[str, ...] | frozenset[str], *, comma: bool = False
    ) -> list[Group]:
        """Cut before each of these words, or after each comma."""
        pieces = [Group()]
        for index, (part, spaced) in enumerate(zip(self.parts, self.spaced, strict=True)):
            if self.word(index) in starts and pieces[-1].parts:
                pieces.append(Group())
            pieces[-1].add(part, spaced)
            if comma and part == "," and index + 1 < len(self.parts):
                pieces.append(Group())
        return pieces


def laid_out(sql: str) -> str:
    """The statement with a line for each clause, column and condition that would be too long."""
    return "\n".join(_inside(_grouped(sql), 0)) + "\n"


def _grouped(sql: str) -> Group:
    stack, end, types = [Group()], 0, 0
    for token in Tokenizer(dialect="spark").tokenize(sql):
        text, spaced = sql[token.start : token.end + 1], token.start > end
        end = token.end + 1
        if text == ")":
            stack.pop()
            continue
        # A type is one word, whatever is in it.
        types += text.count("<") if types or stack[-1].parts[-1:] == ["struct"] else 0
        if types:
            stack[-1].parts[-1] += text
            types -= text.count(">")
            continue
        if stack[-1].parts and text in JOINS and stack[-1].word(-1) in ("LEFT", "FULL"):
            stack[-1].parts[-1] += f" {text}"
            continue
        part = Group() if text == "(" else text
        stack[-1].add(part, spaced)
        if isinstance(part, Group):
            stack.append(part)
    return stack[0]


def _inside(group: Group, indent: int) -> list[str]:
    """Lines of what stands between two parentheses."""
    if group.fits(indent):
        return [" " * indent + group.flat]
    if group.is_query:
        return [line for clause in group.split(CLAUSES) for line in _clause(clause, indent)]
    if group.word() in ("PARTITION", "ORDER"):
        pieces = group.split(("ORDER", "ROWS"))
    elif "," in group.parts:
        pieces = group.split((), comma=True)
    else:
        pieces = group.split(("AND", "OR"))
    return [line for piece in pieces for line in _item(piece, indent)]


def _clause(clause: Group, indent: int) -> list[str]:
    if not clause.is_query or clause.fits(indent):
        return _item(clause, indent)
    items = Group(clause.parts[1:], clause.spaced[1:]).split((), comma=True)
    columns = [line for item in items for line in _item(item, indent + 2)]
    return [" " * indent + clause.word(), *columns]


def _item(item: Group, indent: int) -> list[str]:
    """One column, condition or clause: in a line, or its parts and long parentheses in several."""
    if item.fits(indent):
        return [" " * indent + item.flat]
    breaks = ("WHEN", "ELSE", "END") if "CASE" in item.parts else ("AND", "OR")
    lines: list[str] = []
    for number, piece in enumerate(item.split(breaks)):
        deeper = indent + (2 if number and piece.word() != "END" else 0)
        lines += _piece(piece, deeper)
    return lines


def _piece(piece: Group, indent: int) -> list[str]:
    if piece.fits(indent):
        return [" " * indent + piece.flat]
    lines, line = [], " " * indent
    for index, (part, spaced) in enumerate(zip(piece.parts, piece.spaced, strict=True)):
        line += " " if spaced and index else ""
        if isinstance(part, str):
            line += part
        elif part.fits(len(line) + 1) and len(part.flat) < WIDTH // 3:
            line += f"({part.flat})"
        else:
            lines += [line + "(", *_inside(part, indent + 2)]
            line = " " * indent + ")"
    return [*lines, line]
