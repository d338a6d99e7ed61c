"""Workbooks of Excel by hand: the few parts that a program needs to open them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from xml.sax.saxutils import escape, quoteattr

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_LINKS = "http://schemas.openxmlformats.org/package/2006/relationships"
#: Styles by number: none, a date, a moment, a time, hours, and a number in a currency.
_FORMATS = ("", "14", "22", "20", "46", "164", "165")
_CELLS = "".join(f'<xf numFmtId="{one or 0}"/>' for one in _FORMATS)
_STYLES = (
    f'<styleSheet xmlns="{_MAIN}"><numFmts count="2">'
    '<numFmt numFmtId="164" formatCode="[$-407]dd/mm/yyyy;@"/>'
    '<numFmt numFmtId="165" formatCode="#,##0.00\\ &quot;days&quot;"/></numFmts>'
    f"<cellXfs>{_CELLS}</cellXfs></styleSheet>"
)


def workbook(
    sheets: Mapping[str, str], strings: tuple[str, ...] = (), *, hidden: str = "", book: str = ""
) -> bytes:
    """A workbook; the rows of each sheet are XML, `book` stands before its list of sheets."""
    links = "".join(
        f'<Relationship Id="r{n}" Type="{_OFFICE}/worksheet" Target="worksheets/s{n}.xml"/>'
        for n in range(len(sheets))
    )
    states = {name: "hidden" if name == hidden else "visible" for name in sheets}
    listed = "".join(
        f'<sheet name={quoteattr(name)} r:id="r{n}" state="{state}"/>'
        for n, (name, state) in enumerate(states.items())
    )
    texts = "".join(f"<si><t>{escape(text)}</t></si>" for text in strings)
    parts = {
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}">{book}'
        f"<sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_LINKS}">{links}'
        f'<Relationship Id="t" Type="{_OFFICE}/sharedStrings" Target="/xl/strings.xml"/>'
        f'<Relationship Id="y" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>',
        "xl/strings.xml": f'<sst xmlns="{_MAIN}">{texts}</sst>',
        "xl/styles.xml": _STYLES,
        **{
            f"xl/worksheets/s{n}.xml": rows
            if rows.startswith("<!")
            else f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'
            for n, rows in enumerate(sheets.values())
        },
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def row(*cells: str) -> str:
    """A row of cells."""
    return f"<row>{''.join(cells)}</row>"


def text(value: str) -> str:
    """A cell with a text of its own."""
    return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'


def number(value: str, style: int = 0) -> str:
    """A cell with a number, which a style may make a date."""
    return f'<c s="{style}"><v>{value}</v></c>'
