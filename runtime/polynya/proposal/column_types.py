"""The types of columns out of all values of a sample; what is doubtful stays text, with a reason.

Nothing is guessed that a value contradicts: each type is tried on every value, by the conversion
that a run uses for a declared column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal as Number
from typing import Any, Final

from polynya.formats.records.csv import text_type
from polynya.formats.values.exact import digits_needed, exact_decimal, parse
from polynya.formats.values.times import iso_days, iso_micros
from polynya.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    MAX_PRECISION,
    TIMESTAMP,
    DataType,
    Decimal,
    Void,
    parse_type,
)
from polynya.proposal.local_times import looks_like_time, time_pattern
from polynya.proposal.settings import ProposedSetting

_MONEY: Final = frozenset(
    {"price", "amount", "total", "cost", "fee", "balance", "tax", "discount", "salary", "revenue"}
)
_TIME_WORDS: Final = frozenset(
    {
        "time", "timestamp", "ts", "at", "date", "datetime", "created", "updated", "modified",
        "changed", "epoch", "when", "occurred", "received", "started", "ended",
    }
)  # fmt: skip
#: Words that stand for NULL in files of other programs. Which one does is a matter of evidence.
NULL_WORDS: Final = frozenset(
    {
        "NA", "N/A", "n/a", "#N/A", "NULL", "null", "Null", "None", "none", "NaN", "nan", "-", "--",
        "?", ".", r"\N", "missing",
    }
)  # fmt: skip
_INTEGER: Final = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
#: Seconds since 1970 of the years 2001 to 2100, and the same in milliseconds.
_SECONDS: Final = range(978_307_200, 4_102_444_800)
_UNITS: Final = ((1, "epoch_seconds", "seconds"), (1000, "epoch_milliseconds", "milliseconds"))
#: Most digits after the point for which a decimal type is proposed.
_MOST_SCALE: Final = 18
_ROOM: Final = 18
#: Characters of a number; no column holds a longer one.
_MOST_DIGITS: Final = 100


def words(name: str) -> list[str]:
    """The words of a column name, in small letters: `orderId` is `order`, `id`."""
    return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())


@dataclass(frozen=True, slots=True)
class NumberStyle:
    """How numbers are written: the character of the fraction and that between thousands."""

    decimal: str
    thousands: str | None

    def plain(self, text: str) -> str:
        """The number as programs write it."""
        if self.thousands is not None:
            text = text.replace(self.thousands, "")
        return text.replace(self.decimal, ".")

    def pattern(self) -> re.Pattern[str]:
        """What numbers look like."""
        fraction = rf"(?:{re.escape(self.decimal)}\d+)?"
        if self.thousands is None:
            return re.compile(rf"[+-]?\d+{fraction}", re.ASCII)
        group = re.escape(self.thousands)
        return re.compile(rf"[+-]?(?:\d{{1,3}}(?:{group}\d{{3}})+|\d+){fraction}", re.ASCII)

    def is_used(self, texts: Collection[str]) -> bool:
        """Whether all texts are numbers in this style, and some in no other."""
        marks = self.decimal + (self.thousands or "")
        odd = any(mark in text for text in texts for mark in marks if marks != ".")
        pattern = self.pattern()
        return odd and all(len(t) <= _MOST_DIGITS and pattern.fullmatch(t) for t in texts)

    def proves(self, text: str) -> bool:
        """Whether no other style reads the text as another number."""
        whole, point, fraction = text.partition(self.decimal)
        groups = 0 if self.thousands is None else whole.count(self.thousands)
        if self.decimal == ".":
            return groups > 1 or (groups == 1 and bool(point))
        return (bool(point) and (len(fraction) != 3 or groups > 0)) or groups > 1

    def settings(self) -> dict[str, ProposedSetting]:
        """The settings of a landing that say so."""
        found = {}
        if self.decimal != ".":
            found["decimal_separator"] = ProposedSetting(
                self.decimal, f"numbers such as {self._example()}"
            )
        if self.thousands is not None:
            found["thousands_separator"] = ProposedSetting(
                self.thousands, f"numbers such as {self._example()}"
            )
        return found

    def _example(self) -> str:
        return f"1{self.thousands or ''}234{self.decimal}50"


_STYLES: Final = (
    NumberStyle(",", None),
    NumberStyle(",", "."),
    NumberStyle(",", " "),
    NumberStyle(",", "\u00a0"),
    NumberStyle(",", "\u202f"),
    NumberStyle(",", "'"),
    NumberStyle(".", ","),
    NumberStyle(".", "'"),
)


def number_style(columns: Iterable[Collection[str]]) -> NumberStyle | None:
    """The style of the numbers of a file, given the texts of each column; None: as in programs.

    A style needs a proof: a number that another style cannot read. It must not contradict a column
    that holds plain numbers.
    """
    texts = [column for column in columns if column]
    plain = [column for column in texts if _all(column, _NUMBER.fullmatch)]
    others = [column for column in texts if not _all(column, _NUMBER.fullmatch)]
    fractions = any("." in text and len(text.partition(".")[2]) != 3 for c in plain for text in c)
    best: tuple[int, NumberStyle] | None = None
    for style in _STYLES:
        if style.decimal == "," and fractions:
            continue
        pattern = style.pattern()
        read = [column for column in others if _all(column, pattern.fullmatch)]
        if any(style.proves(text) for column in read for text in column) and (
            best is None or len(read) > best[0]
        ):
            best = len(read), style
    if best is None:
        return None
    grouped = NumberStyle(",", ".")
    if best[1] == NumberStyle(",", None) and any(map(_may_be_grouped, plain)):
        return grouped
    return best[1]


def _may_be_grouped(texts: Collection[str]) -> bool:
    """Whether the points of plain numbers may part thousands: three digits follow each."""
    pattern = NumberStyle(",", ".").pattern()
    return any("." in text for text in texts) and all(
        pattern.fullmatch(text) and not re.match(r"[+-]?0", text) for text in texts
    )


def null_word(columns: Iterable[Mapping[str | None, int]]) -> str | None:
    """The word that means NULL, given how often each column has each text (None: an empty field).

    It is one without which a column would hold only numbers or times. None also where such a column
    has empty fields, too: there is one setting for both.
    """
    found: Counter[str] = Counter()
    for counts in columns:
        texts = {text for text in counts if text is not None}
        said = {text for text in texts if text in NULL_WORDS}
        rest = texts - said
        if r"\N" in said:
            found[r"\N"] += 1
        elif len(said) == 1 and rest and all(map(_is_typed, rest)):
            if None in counts:
                return None
            found[said.pop()] += 1
    if not found:
        return None
    return found.most_common(1)[0][0]


def texts_beside(columns: Iterable[Mapping[str | None, int]], word: str) -> int:
    """How many columns hold the word among texts that are not numbers or times."""
    return sum(
        word in counts
        and not all(text is None or text in NULL_WORDS or _is_typed(text) for text in counts)
        for counts in columns
    )


def _is_typed(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text) or looks_like_time(text)) or any(
        style.pattern().fullmatch(text) for style in _STYLES
    )


def text_column(
    name: str,
    counts: Mapping[str, int],
    style: NumberStyle | None,
    *,
    has_semicolons: bool = False,
) -> ProposedSetting | None:
    """The declared type of a column of texts, by how often each occurs.

    None where every single value would make inference choose the right type. Files with semicolons
    (`has_semicolons`) come from countries where a point often parts thousands.
    """
    texts = list(counts)
    if not texts:
        return None
    if {text.strip() for text in texts} & NULL_WORDS and any(map(_is_typed, texts)):
        word = next(text for text in texts if text.strip() in NULL_WORDS)
        return ProposedSetting(
            "string", f"has `{word}` beside values, but only one word or the empty field is NULL"
        )
    if style is not None and style.is_used(texts):
        return _styled(name, [style.plain(text) for text in texts])
    if style is None and has_semicolons and _may_be_grouped(texts):
        return ProposedSetting("string", "a point may begin a fraction or part thousands: check")
    for found in _tries(name, texts):
        if found is not None:
            kept = _kept(found, texts)
            return None if kept.value is None else kept
    if style is None and _all(texts, NumberStyle(".", ",").pattern().fullmatch):
        return ProposedSetting("string", "a comma may begin a fraction or part thousands: check")
    return _mixed(counts)


def _tries(name: str, texts: Sequence[str]) -> Iterator[ProposedSetting | None]:
    """What a column may be, the most likely first; a value of None: inference does it right."""
    yield _booleans(texts)
    yield _times(texts)
    yield _days(name, texts)
    if any(len(text) > _MOST_DIGITS for text in texts):
        return
    if _all(texts, _INTEGER.fullmatch):
        yield _integers(name, texts)
    elif _all(texts, lambda text: _NUMBER.fullmatch(text.strip())):
        yield _numbers(name, [text.strip() for text in texts])


def _booleans(texts: Collection[str]) -> ProposedSetting | None:
    if set(texts) <= {"true", "false"}:
        return ProposedSetting(None, "")
    if {text.lower() for text in texts} <= {"true", "false"}:
        return ProposedSetting("boolean", "true and false, in another spelling")
    return None


def _times(texts: Collection[str]) -> ProposedSetting | None:
    if not _all(texts, lambda text: len(text) >= 8 and text[4:5] == "-"):
        return None
    if _all(texts, lambda text: _reads(iso_days, text)):
        return ProposedSetting("date", "ISO 8601 in each record")
    if not _all(texts, lambda text: _reads(iso_micros, text)):
        return None
    zoned = _all(texts, lambda text: re.search(r"(Z|z|UTC|[+-]\d\d:?\d\d)$", text[10:]))
    return _ZONED if zoned else _NO_ZONE


_ZONED: Final = ProposedSetting("timestamp", "ISO 8601 with a zone in each record")
_NO_ZONE: Final = ProposedSetting("timestamp", "ISO 8601 without a zone: taken as UTC")


def _days(name: str, texts: Sequence[str]) -> ProposedSetting | None:
    """Dates and times of a local style: `31.12.2026`, `12/31/2026 11:59 PM`, `31-Dec-2026`."""
    found = time_pattern(texts)
    if found is None:
        return _compact_days(name, texts)
    if not found.pattern:
        reason = "dates of which day and month cannot be told apart in any record: check"
        return ProposedSetting("string", reason)
    what = "dates" if found.kind == "date" else "times"
    return ProposedSetting({"type": found.kind, "format": found.pattern}, f"{what} of one style")


def _compact_days(name: str, texts: Sequence[str]) -> ProposedSetting | None:
    """`20261231`, where the name says that it is a date."""
    if _TIME_WORDS.isdisjoint(words(name)) or not _all(texts, _is_compact_day):
        return None
    return ProposedSetting({"type": "date", "format": "yyyyMMdd"}, "dates of one style")


def _is_compact_day(text: str) -> bool:
    return (
        len(text) == 8
        and text.isascii()
        and text.isdigit()
        and "1900" <= text[:4] <= "2199"
        and _reads(iso_days, f"{text[:4]}-{text[4:6]}-{text[6:]}")
    )


def _integers(name: str, texts: Sequence[str]) -> ProposedSetting | None:
    numbers = [int(text) for text in texts]
    if any(re.match(r"[+-]?0\d", text) for text in texts):
        return ProposedSetting("string", "numbers that begin with 0, as codes do")
    if any(not -(1 << 63) <= number < 1 << 63 for number in numbers):
        return ProposedSetting("string", "digits, more than a whole number has")
    epoch = _epoch(name, numbers)
    if epoch is not None:
        return epoch
    if is_money(name):
        return _MONEY_TYPE
    return ProposedSetting("bigint" if any("+" in text for text in texts) else None, "numbers")


def _epoch(name: str, numbers: Collection[int]) -> ProposedSetting | None:
    """Times as numbers since 1970, where the name says that they are times."""
    if _TIME_WORDS.isdisjoint(words(name)):
        return None
    for factor, pattern, unit in _UNITS:
        if all(number // factor in _SECONDS for number in numbers):
            reason = f"{unit} since 1970 in each record"
            return ProposedSetting({"type": "timestamp", "format": pattern}, reason)
    return None


_MONEY_TYPE: Final = ProposedSetting(
    "decimal(18,4)", "sounds like money; whole numbers alone would make it bigint"
)


def is_money(name: str) -> bool:
    """Whether a column sounds like an amount of money."""
    return not _MONEY.isdisjoint(words(name))


def _numbers(name: str, texts: Sequence[str]) -> ProposedSetting:
    """The type of a column in which some numbers have a fraction or an exponent."""
    numbers = [Number(text) for text in texts]
    if is_money(name) and _all(numbers, lambda n: _fits(n, _decimal_of("decimal(18,4)"))):
        return ProposedSetting("decimal(18,4)", "sounds like money")
    kind = text_type(Void(), list(texts))
    if kind == DOUBLE:
        # A first batch of whole numbers alone would make the column bigint.
        mixed = any(map(_INTEGER.fullmatch, texts))
        return ProposedSetting("double" if mixed else None, "whole numbers and fractions")
    return _decimals(numbers, "numbers with a fraction, kept digit by digit") or (
        ProposedSetting("double", "numbers with more digits than a decimal type has: rounded")
        if any("e" in text or "E" in text for text in texts)
        else ProposedSetting("string", "numbers with more digits than a decimal type has")
    )


def _styled(name: str, texts: Sequence[str]) -> ProposedSetting:
    """The declared type of numbers in a local style, given as programs write them."""
    if _all(texts, _INTEGER.fullmatch) and not is_money(name):
        return ProposedSetting("bigint", "whole numbers in the style of the file")
    numbers = [Number(text) for text in texts]
    if is_money(name) and _all(numbers, lambda n: _fits(n, _decimal_of("decimal(18,4)"))):
        return ProposedSetting("decimal(18,4)", "sounds like money")
    return _decimals(numbers, "numbers in the style of the file") or ProposedSetting(
        "string", "numbers with more digits than a decimal type has"
    )


def _decimals(numbers: Collection[Number], reason: str) -> ProposedSetting | None:
    whole = max(digits_needed(number)[0] for number in numbers)
    # As they are spelled: zeros at the end count.
    scale = max(max(-int(number.as_tuple().exponent), 0) for number in numbers)
    if scale > _MOST_SCALE or whole + scale > MAX_PRECISION:
        return None
    # Room for larger numbers than those of the sample.
    precision = _ROOM if whole + 3 + scale <= _ROOM else MAX_PRECISION
    return ProposedSetting(f"decimal({precision},{scale})", reason)


def _decimal_of(text: str) -> Decimal:
    kind = parse_type(text)
    assert isinstance(kind, Decimal)
    return kind


def _fits(number: Number, kind: Decimal) -> bool:
    whole, scale = digits_needed(number)
    return scale <= kind.scale and whole <= kind.precision - kind.scale


def _kept(found: ProposedSetting, texts: Sequence[str]) -> ProposedSetting:
    """A type that a run reads every value as, or text. Numbers were converted already."""
    if found.value != "timestamp":
        return found
    kind = TIMESTAMP
    for text in texts:
        try:
            parse(text, kind)
        except ValueError:
            return ProposedSetting("string", f"not each value is a {kind}")
    return found


def _mixed(counts: Mapping[str, int]) -> ProposedSetting | None:
    """Text, declared where single values look like something else."""
    odd = sum(count for text, count in counts.items() if _infers_other(text))
    if not odd:
        return None
    total = sum(counts.values())
    reason = f"mixed: {total - odd:,} of {total:,} values are not numbers"
    return ProposedSetting("string", reason)


def _infers_other(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text)) or text in {"true", "false"}


def json_column(name: str, values: Sequence[Any]) -> ProposedSetting | None:
    """The declared type of a column of JSON values; None where inference takes the right one."""
    present = [value for value in values if value is not None]
    kinds = {_KINDS.get(type(value), "text") for value in present}
    if not kinds:
        return None
    if kinds == {"text"}:
        texts = list(dict.fromkeys(present))
        found = _times(texts) or _days(name, texts)
        return None if found is None else _kept(found, texts)
    if kinds == {"numbers"}:
        return _json_numbers(name, present)
    if len(kinds) > 1:
        listed = ", ".join(sorted(kinds))
        return ProposedSetting("string", f"mixed: {listed}; values other than text as JSON")
    return None


_KINDS: Final[Mapping[type, str]] = {
    bool: "booleans",
    int: "numbers",
    float: "numbers",
    Number: "numbers",
    dict: "objects",
    list: "lists",
}


def _json_numbers(name: str, numbers: Sequence[int | float | Number]) -> ProposedSetting | None:
    whole = [number for number in numbers if type(number) is int]
    if len(whole) == len(numbers):
        if any(not -(1 << 63) <= number < 1 << 63 for number in whole):
            return ProposedSetting("decimal(38,0)", "more digits than bigint has")
        return _epoch(name, whole) or (_MONEY_TYPE if is_money(name) else None)
    try:
        exact = [exact_decimal(number) for number in numbers]
    except ValueError:
        # NaN and infinity, which are not JSON: the trial says so.
        return None
    if is_money(name) and _all(exact, lambda n: _fits(n, _decimal_of("decimal(18,4)"))):
        return ProposedSetting("decimal(18,4)", "sounds like money")
    if all(type(number) is float for number in numbers):
        return None
    if _all(numbers, lambda number: _reads(lambda n: parse(n, DOUBLE), number)):
        return ProposedSetting("double", "whole numbers and fractions")
    return _decimals(exact, "numbers of many digits, kept digit by digit")


def _reads(convert: Callable[[Any], Any], value: Any) -> bool:
    try:
        convert(value)
    except ValueError:
        return False
    return True


def _all(values: Iterable[Any], test: Callable[[Any], Any]) -> bool:
    return all(map(test, values))


#: Types that a file without header line declares for columns that inference would handle.
_TYPED: Final[Mapping[DataType, str]] = {BIGINT: "bigint", DOUBLE: "double", BOOLEAN: "boolean"}


def declared_type(texts: Sequence[str]) -> ProposedSetting:
    """The type of a column that inference handles, for files in which all must be declared."""
    kind = text_type(Void(), list(texts))
    if isinstance(kind, Void):
        return ProposedSetting("string", "no value in the sample")
    return ProposedSetting(_TYPED.get(kind, "string"), "of all values")


#: Types with which a column can be the time of an event.
TIMES: Final = frozenset({TIMESTAMP, DATE})
