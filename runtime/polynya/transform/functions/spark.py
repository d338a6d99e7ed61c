"""The functions that users' expressions may call: pure, deterministic, one value per row.

It is an allow-list on purpose. Not on it: anything that reaches outside (`reflect`, `java_method`,
`input_file_name`), is not the same on every run (`current_timestamp`, `rand`, `uuid`), looks at
other rows (aggregates, windows), makes rows (`explode`), raises (`raise_error`), or grows a value
without bound (`repeat`, `sequence`, `lpad`).
"""

from __future__ import annotations

from typing import Final

_CONDITIONAL: Final = """
    coalesce equal_null greatest if ifnull isnan isnotnull isnull least nanvl nullif
    nullifzero nvl nvl2 zeroifnull
"""
_STRING: Final = """
    ascii base64 bit_length btrim char char_length character_length chr concat concat_ws
    contains endswith find_in_set hex initcap instr lcase left length levenshtein locate
    lower ltrim md5 octet_length position regexp regexp_count regexp_extract regexp_instr
    regexp_like regexp_replace regexp_substr replace reverse right rlike rtrim sha sha1 sha2
    split_part startswith substr substring substring_index translate trim ucase unbase64
    unhex upper
"""
_NUMBER: Final = """
    abs bin bround cbrt ceil ceiling conv crc32 div exp floor hash ln log log10 log2 mod
    negative pmod positive pow power round shiftleft shiftright sign signum sqrt try_add
    try_divide try_mod try_multiply try_subtract xxhash64
"""
_DATE: Final = """
    add_months date_add date_diff date_format date_from_unix_date date_part date_sub
    date_trunc datediff day dayofmonth dayofweek dayofyear extract from_unixtime
    from_utc_timestamp hour last_day make_date make_timestamp minute month months_between
    next_day quarter second timestamp_micros timestamp_millis timestamp_seconds to_date
    to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc
    try_to_date try_to_timestamp unix_date unix_micros unix_millis unix_seconds
    unix_timestamp weekday weekofyear year
"""
_CONVERSION: Final = """
    bigint binary boolean date decimal double float int smallint string timestamp tinyint
    to_binary to_char to_number try_to_binary try_to_number
"""
_NESTED: Final = """
    array_contains array_position cardinality element_at get get_json_object
    json_array_length json_object_keys map_contains_key size try_element_at
"""

ALLOWED_FUNCTIONS: Final = frozenset(
    f"{_CONDITIONAL} {_STRING} {_NUMBER} {_DATE} {_CONVERSION} {_NESTED}".split()
)
