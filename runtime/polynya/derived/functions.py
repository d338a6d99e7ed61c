"""The functions that a statement may call, by what matters to a result that is kept up to date."""

from __future__ import annotations

from typing import Final

from polynya.transform.functions.core import ALLOWED_FUNCTIONS


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_EXACT_AGGREGATES: Final = """
    approx_count_distinct bit_and bit_or bit_xor bool_and bool_or count count_if every grouping
    grouping_id max median min percentile percentile_cont percentile_disc some
"""
#: Sums of doubles differ in their last bits with the order of the rows; of decimals they do not.
SUMS: Final = _names(
    """
    avg corr covar_pop covar_samp kurtosis mean regr_avgx regr_avgy regr_count regr_intercept
    regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness std stddev stddev_pop stddev_samp sum
    try_avg try_sum var_pop var_samp variance
    """
)
#: Their result depends on the order in which rows are read, where nothing decides it.
ORDERED_AGGREGATES: Final = _names(
    """
    any_value approx_percentile array_agg collect_list collect_set first first_value last
    last_value listagg max_by min_by mode percentile_approx string_agg
    """
)
AGGREGATES: Final = _names(_EXACT_AGGREGATES) | SUMS | ORDERED_AGGREGATES
#: Window functions that number or follow rows: ties of their ORDER BY are numbered anyhow.
ORDERED_WINDOWS: Final = _names("lag lead nth_value ntile row_number")
_WINDOWS: Final = ORDERED_WINDOWS | {"cume_dist", "dense_rank", "percent_rank", "rank"}
GENERATORS: Final = _names(
    """
    explode explode_outer inline inline_outer posexplode posexplode_outer stack
    """
)
#: Another value at each call, or at another time.
NOT_DETERMINISTIC: Final = _names(
    """
    curdate current_date current_timestamp current_timezone localtimestamp
    monotonically_increasing_id now rand randn random shuffle uuid
    """
)
#: Maps cannot be compared, so that a column of these restricts nothing.
MAPS: Final = _names(
    """
    from_json map map_concat map_entries map_filter map_from_arrays map_from_entries
    map_zip_with parse_json str_to_map transform_keys transform_values try_parse_json
    """
)
_MORE: Final = """
    acos any array array_append array_compact array_distinct array_except array_insert
    array_intersect array_join array_max array_min array_prepend array_remove array_repeat
    array_size array_sort array_union arrays_overlap arrays_zip asin atan atan2 cos cot dateadd
    date_from_unix_date degrees dayname encode decode exists factorial filter flatten forall
    format_number format_string from_json greatest hypot isnotnull json_tuple lpad map map_concat
    map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with
    monthname named_struct overlay parse_url pi radians reduce repeat rint rpad schema_of_json
    sentences sequence sin slice sort_array soundex space split str_to_map struct tan
    timestampadd timestampdiff to_json transform transform_keys transform_values try_cast typeof
    url_decode url_encode width_bucket aggregate ceil ceiling date timestamp array_position
    day_of_week to_varchar
"""
SCALARS: Final = ALLOWED_FUNCTIONS | _names(_MORE)
STATEMENT_FUNCTIONS: Final = SCALARS | AGGREGATES | _WINDOWS | GENERATORS | NOT_DETERMINISTIC | MAPS
#: Functions that give in DuckDB what they give in Spark, apart from the types of sums.
SAME_IN_DUCKDB: Final = _names(
    """
    abs avg coalesce concat count dense_rank greatest grouping lag lead least lower max min nullif
    rank row_number sum upper year month day
    """
)
