"""Files as people have them, with what is proposed for each."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from tests.formats.workbook import number, row, text, workbook


@dataclass(frozen=True)
class Case:
    """A file, and what is proposed for it.

    `landing` and `columns` are the settings without their reasons; `key` and `sequence` None: each
    record is a row.
    """

    name: str
    content: bytes
    records: int
    landing: Mapping[str, object] = field(default_factory=dict)
    columns: Mapping[str, object] = field(default_factory=dict)
    key: str | None = None
    sequence: str | None = None
    format: str = "csv"


def lines(*rows: object) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


def json_lines(*records: Mapping[str, Any]) -> bytes:
    return lines(*map(json.dumps, records))


def parquet(records: list[dict[str, Any]]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records), file)
    return file.getvalue()


def orc_file(records: list[dict[str, Any]]) -> bytes:
    file = io.BytesIO()
    orc.write_table(pa.Table.from_pylist(records), file)
    return file.getvalue()


def avro(records: list[dict[str, Any]]) -> bytes:
    schema = {
        "type": "record",
        "name": "row",
        "fields": [{"name": "id", "type": "long"}, {"name": "city", "type": "string"}],
    }
    file = io.BytesIO()
    fastavro.writer(file, schema, records)
    return file.getvalue()


def zipped(members: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


SHEET = row(text("Sales 2026")) + row() + row(*map(text, ("order", "day", "total", "share")))
SHEET += "".join(
    row(number(str(n)), number(str(46053 + n), 1), number(f"{n}.5"), number(f"{n % 2}.25"))
    for n in range(1, 4)
)

HEADER = {"header": True}
PEOPLE = ("id,name,city", "1,Ana,León", "2,Bo,Århus", "3,Cy,Cancún")
CITIES = [{"id": 1, "city": "Leon"}, {"id": 2, "city": "Tepic"}]
WEATHER = [
    f"2026-01-{day:02d},{hour},{40 + hour % 7}" for day in range(1, 21) for hour in range(24)
]
WAGES = ('"","wage","educ"', '"1",5.15,12', '"2",4.95,NA', '"3",6.67,16')
NO_NAME = {"skip_lines": 1, "header": False}

CASES = {
    "commas": Case("people.csv", lines(*PEOPLE), 3, HEADER),
    "tabs": Case(
        "a.csv", lines(*PEOPLE).replace(b",", b"\t"), 3, {"delimiter": "\t", **HEADER}
    ),
    "tabs in .tsv": Case(
        "a.tsv", lines(*PEOPLE).replace(b",", b"\t"), 3, {"delimiter": "\t", **HEADER}
    ),
    "pipes": Case("a.csv", lines(*PEOPLE).replace(b",", b"|"), 3, {"delimiter": "|", **HEADER}),
    "semicolons": Case(
        "a.csv", lines(*PEOPLE).replace(b",", b";"), 3, {"delimiter": ";", **HEADER}
    ),
    "semicolons in .txt": Case(
        "a.txt", lines(*PEOPLE).replace(b",", b";"), 3, {"delimiter": ";", **HEADER}
    ),
    "Excel says the delimiter": Case(
        "a.csv", lines("sep=;", "id;note", "1;a,b", "2;c"), 2,
        {"delimiter": ";", "skip_lines": 1, **HEADER},
    ),
    "no header": Case(
        "a.csv", lines("1,Ana,2026-01-01", "2,Bo,2026-01-02"), 2, {"header": False},
        {"column_1": "bigint", "column_2": "string", "column_3": "date"},
    ),
    "a title": Case(
        "a.csv", lines("Report of the year 2026", "", "id,qty,unit", "1,5,kg", "2,7,kg"), 2,
        {"skip_lines": 2, **HEADER},
    ),
    "a title of a spreadsheet": Case(
        "a.csv", lines("Report;;", ";;", "id;qty;unit", "1;5;kg", "2;7;kg"), 2,
        {"delimiter": ";", "skip_lines": 2, **HEADER},
    ),
    "comments": Case(
        "a.csv", lines("# exported 2026-01-01", "# by hand", "id,qty", "1,5", "# pause", "2,7"), 2,
        {"comment": "#", **HEADER},
    ),
    "names in a comment": Case(
        "a.bed", lines("#chrom\tstart\tend", "chr1\t10\t20", "chr2\t30\t40"), 2,
        {"delimiter": "\t", "skip_lines": 1, "header": False},
        {"chrom": "string", "start": "bigint", "end": "bigint"},
    ),
    "a hash begins records": Case("a.csv", lines("tag,n", "#one,1", "#two,2"), 2, HEADER),
    "cp1252": Case(
        "a.csv", "name,city\nJürgen,Köln\nRené,Besançon\n".encode("cp1252"), 2,
        {"encoding": "windows-1252", **HEADER},
    ),
    "UTF-8 with a mark": Case("a.csv", b"\xef\xbb\xbf" + lines(*PEOPLE), 3, HEADER),
    "UTF-16": Case(
        "a.csv", b"\xff\xfe" + lines(*PEOPLE).decode().replace(",", "\t").encode("utf-16-le"), 3,
        {"encoding": "utf-16", "delimiter": "\t", **HEADER},
    ),
    "Windows line ends": Case("a.csv", lines(*PEOPLE).replace(b"\n", b"\r\n"), 3, HEADER),
    "gzip": Case("a.csv.gz", gzip.compress(lines(*PEOPLE)), 3, HEADER),
    "xz": Case("a.csv.xz", lzma.compress(lines(*PEOPLE)), 3, HEADER),
    "UTF-16 without a mark": Case(
        "a.csv", lines(*PEOPLE).decode().encode("utf-16-be"), 3,
        {"encoding": "utf-16-be", **HEADER},
    ),
    "a ZIP archive": Case("people.zip", zipped({"people.csv": lines(*PEOPLE)}), 3, HEADER),
    "a ZIP archive of several files": Case(
        "people.zip",
        zipped({f"{n}.csv": lines("id;city", f"{n};Leon", f"{n};Rome") for n in range(3)}), 6,
        {"delimiter": ";", **HEADER},
    ),
    "a ZIP archive with a note": Case(
        "people.zip", zipped({"readme.txt": b"hello", "people.csv": lines(*PEOPLE)}), 3,
        {"zip_member": "*.csv", **HEADER},
    ),
    "a zipped document in UTF-16": Case(
        "a.zip", zipped({"a.json": json.dumps(CITIES, indent=1).encode("utf-16")}), 2,
        {"encoding": "utf-16", "record_path": "$"}, format="json",
    ),
    "Parquet in a ZIP archive": Case("a.zip", zipped({"a": parquet(CITIES)}), 2, format="parquet"),
    "JSON lines in UTF-32": Case(
        "a.json", json_lines(*CITIES).decode().encode("utf-32"), 2, {"encoding": "utf-32"},
        format="json",
    ),
    "JSON in windows-1252": Case(
        "a.json", '{"city": "Köln"}\n{"city": "Besançon"}\n'.encode("cp1252"), 2,
        {"encoding": "windows-1252"}, format="json",
    ),
    "bzip2": Case("a.csv.bz2", bz2.compress(lines(*PEOPLE)), 3, HEADER),
    "single quotes": Case(
        "a.csv", lines("'id','text'", "'1','a, b'", "'2','c'"), 2, {"quote": "'", **HEADER},
    ),
    "escaped quotes": Case(
        "a.csv", lines("id,text", r'1,"he said \"hi, there\" to her"', '2,"x"'), 2,
        {"escape": "\\", **HEADER},
    ),
    "quotes that are inches": Case(
        "a.csv", lines("id,size", '1,"5 pipe', "2,3 rod", '3,"7 pipe'), 3, {"quote": "", **HEADER}
    ),
    "lines in fields": Case("a.csv", lines("id,note", '1,"two\nlines"', '2,"one"'), 2, HEADER),
    "a column without a name": Case(
        "wages.csv", lines(*WAGES), 3, {**NO_NAME, "null_value": "NA"},
        {"row_number": "bigint", "wage": "double", "educ": "bigint"},
    ),
    "numbers as names beside a column without one": Case(
        "a.csv", lines('"","1940","1945"', '"Food",22.2,44.5', '"Health",3.53,5.76'), 2, NO_NAME,
        {"column_1": "string", "1940": "double"},
    ),
    "a name less, as R writes": Case(
        "a.csv", lines('"wage" "educ"', '"a" 5.1 12', '"b" 6.2 14'), 2,
        {"delimiter": " ", **NO_NAME},
        {"column_1": "string", "wage": "double", "educ": "bigint"},
    ),
    "a name twice": Case(
        "a.csv", lines("id,date,date", "1,2026-01-01,2026-02-01"), 1, NO_NAME,
        {"id": "bigint", "date": "date", "date_2": "date"},
    ),
    "names that differ in case": Case(
        "a.csv", lines("id,Name,name", "1,a,b"), 1, NO_NAME,
        {"id": "bigint", "Name": "string", "name_2": "string"},
    ),
    "a delimiter at the end": Case(
        "a.csv", lines("id,qty,", "1,5,", "2,7,"), 2, NO_NAME,
        {"id": "bigint", "qty": "bigint", "column_3": "string"},
    ),
    "a column for each year": Case(
        "a.csv", lines("country,2000,2001", "A,1.5,2.5", "B,3.5,4.5"), 2, HEADER
    ),
    "mixed types": Case(
        "a.csv", lines("id,code", *(f"{n},{n}" for n in range(50)), "50,B7"), 51, HEADER,
        {"code": "string"},
    ),
    "codes with zeros": Case("a.csv", lines("n,zip", "1,01234", "2,70173"), 2, HEADER,
                             {"zip": "string"}),
    "prices": Case("a.csv", lines("n,price", "1,10.00", "2,7.5"), 2, HEADER,
                   {"price": "decimal(18,4)"}),
    "numbers with zeros at the end": Case(
        "a.csv", lines("n,level", "1,10.50", "2,7.25"), 2, HEADER, {"level": "decimal(18,2)"}
    ),
    "whole numbers, then fractions": Case(
        "a.csv", lines("n,level", "1,10", "2,7.25"), 2, HEADER, {"level": "double"}
    ),
    "epoch milliseconds": Case(
        "a.csv", lines("n,updated_at", "1,1767225600000", "2,1767225601500"), 2, HEADER
    ),
    "times": Case(
        "a.csv", lines("n,at,day", "1,2026-01-01T10:00:00Z,2026-01-01"), 1, HEADER,
        {"at": "timestamp", "day": "date"},
    ),
    "a word for NULL": Case(
        "a.csv", lines("n,age,city", "1,37,Rome", "2,NULL,NULL", "3,41,Oslo"), 3,
        {"header": True, "null_value": "NULL"},
    ),
    "NA beside empty fields": Case(
        "a.csv", lines("n,age", "1,37", "2,NA", "3,"), 3, HEADER, {"age": "string"}
    ),
    "Booleans of Python": Case(
        "a.csv", lines("n,paid", "1,True", "2,False"), 2, HEADER, {"paid": "boolean"}
    ),
    "a comma in numbers": Case(
        "a.csv", lines("n;size", "1;1,250", "2;2,125"), 2, {"delimiter": ";", **HEADER},
        {"size": "string"},
    ),
    "days or months": Case(
        "a.csv", lines("n,day", "1,01/02/2026", "2,03/04/2026"), 2, HEADER, {"day": "string"}
    ),
    "one column": Case("a.csv", lines("city", "Rome", "New York", "Oslo"), 3, HEADER),
    "humid does not identify": Case(
        "weather.csv", lines("date,hour,humid", *WEATHER), 480, HEADER, {"date": "date"}
    ),
    "an identifier of others": Case(
        "orders.csv",
        lines(
            "customer_id,updated_at",
            *(f"{n % 3},2026-01-{n:02d}T00:00:00Z" for n in range(1, 9)),
        ),
        8, HEADER, {"updated_at": "timestamp"},
    ),
    "lines of orders": Case(
        "orders.csv",
        lines("order_id,seq,customer,sku", *(f"{n // 3},{n % 3},c{n // 3},s{n}" for n in range(9))),
        9, HEADER,
    ),
    "a point in numbers of a file with semicolons": Case(
        "a.csv", lines("n;people", "1;1.234", "2;987"), 2, {"delimiter": ";", **HEADER},
        {"people": "string"},
    ),
    "records with an identifier and an order": Case(
        "orders.csv",
        lines("order_id,updated_at", "7,2026-01-01T00:00:00Z", "8,2026-01-01T00:00:00Z"), 2, HEADER,
        {"updated_at": "timestamp"}, "order_id", "updated_at",
    ),
    "versions of records": Case(
        "users.jsonl",
        json_lines(
            {"id": 1, "email": "a@x.org", "city": "Leon", "version": 1},
            {"id": 2, "email": "b@x.org", "city": "Leon", "version": 1},
            {"id": 1, "email": "a@x.org", "city": "Tepic", "version": 2},
        ),
        3, key="id", sequence="version", format="json",
    ),
    "an identifier without an order": Case("users.csv", lines("id,city", "1,a", "2,b"), 2, HEADER),
    "JSON lines": Case("a.json", json_lines(*CITIES), 2, format="json"),
    "JSON lines of mixed types": Case(
        "a.ndjson", json_lines({"a": 1}, {"a": "x"}, {"a": [1]}, {"a": {"b": 1}}), 4,
        columns={"a": "string"}, format="json",
    ),
    "whole numbers, then fractions, in JSON": Case(
        "a.jsonl", json_lines({"a": 1}, {"a": 1.5}), 2, columns={"a": "double"}, format="json"
    ),
    "mixed types inside of objects": Case(
        "a.jsonl", json_lines({"o": {"a": 1}}, {"o": {"a": "x"}}), 2, columns={"o": "string"},
        format="json",
    ),
    "times in JSON": Case(
        "a.jsonl", json_lines({"at": "2026-01-01T00:00:00Z", "n": 1}), 1,
        columns={"at": "timestamp"}, format="json",
    ),
    "gzip of JSON lines": Case(
        "a.json.gz", gzip.compress(json_lines(*CITIES)), 2, format="json"
    ),
    "Parquet": Case("a.parquet", parquet(CITIES), 2, format="parquet"),
    "Parquet without a name": Case("export", parquet(CITIES), 2, format="parquet"),
    "ORC": Case("a.orc", orc_file(CITIES), 2, format="orc"),
    "a workbook": Case(
        "sales.xlsx", workbook({"Sales": SHEET, "Notes": row(text("by hand"))}), 3,
        {"sheet": "Sales", "skip_lines": 1},
        {"day": "date", "total": "decimal(18,4)"}, format="excel",
    ),
    "a workbook with names of rows": Case(
        "a.xlsx",
        workbook(
            {"S": row("<c/>", text("id"), text("n"))
             + "".join(row(number(str(at)), number(str(at)), number("2.5")) for at in range(3))}
        ), 3, format="excel",
    ),
    "Avro": Case("a.avro", avro(CITIES), 2, format="avro"),
}  # fmt: skip

ARRAY = b"[\n" + b",\n".join(json.dumps(city).encode() for city in CITIES) + b"\n]\n"
GEO = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": city,
            "geometry": {"type": "Point", "coordinates": [1.5, 2]},
        }
        for city in CITIES
    ],
}
FRENCH = "n;prix;jour\n1;1 234,50;31.12.2026\n2;3,00;01.02.2026\n".replace(" ", "\u00a0")

#: Documents, and numbers and times as people write them.
SPELLED = {
    "a JSON array": Case("a.json", ARRAY, 2, {"record_path": "$"}, format="json"),
    "a JSON array on one line": Case(
        "a.json", json.dumps(CITIES).encode(), 2, {"record_path": "$"}, format="json"
    ),
    "GeoJSON": Case(
        "a.geojson", json.dumps(GEO).encode(), 2, {"record_path": "$.features"}, format="json"
    ),
    "the answer of a service": Case(
        "a.json", json.dumps({"count": 2, "results": CITIES}, indent=2).encode(), 2,
        {"record_path": "$.results"}, format="json",
    ),
    "records over several lines each": Case(
        "a.json", b"\n".join(json.dumps(city, indent=2).encode() for city in CITIES), 2,
        {"record_path": "$"}, format="json",
    ),
    "one record over several lines": Case(
        "a.json", json.dumps({"id": 1, "tags": ["a"]}, indent=2).encode(), 1,
        {"record_path": "$"}, format="json",
    ),
    "a comma before the fraction": Case(
        "a.csv", lines("n;price;day", "1;1.234,50;31.12.2026", "2;3,00;01.02.2026"), 2,
        {"delimiter": ";", "header": True, "decimal_separator": ",", "thousands_separator": "."},
        {"price": "decimal(18,4)", "day": {"type": "date", "format": "dd.MM.yyyy"}},
    ),
    "names of months, and hours with AM and PM": Case(
        "a.csv", lines("n,day,t", "1,31-Dec-2026,12/31/2026 11:59:59 PM"), 1, HEADER,
        {"day": {"type": "date", "format": "dd-MMM-yyyy"},
         "t": {"type": "timestamp", "format": "MM/dd/yyyy hh:mm:ss a"}},
    ),
    "years of two digits": Case(
        "a.csv", lines("n;day", "1;31.12.26"), 1, {"delimiter": ";", **HEADER},
        {"day": {"type": "date", "format": "dd.MM.yy"}},
    ),
    "a space between thousands": Case(
        "a.csv", FRENCH.encode(), 2,
        {"delimiter": ";", "header": True, "decimal_separator": ",",
         "thousands_separator": "\u00a0"},
        {"prix": "decimal(18,2)", "jour": {"type": "date", "format": "dd.MM.yyyy"}},
    ),
    "a comma between thousands": Case(
        "a.csv", lines("n,size,day", '1,"1,250.00",12/31/2026', '2,"7.25",01/02/2026'), 2,
        {"header": True, "thousands_separator": ","},
        {"size": "decimal(18,2)", "day": {"type": "date", "format": "MM/dd/yyyy"}},
    ),
}  # fmt: skip
