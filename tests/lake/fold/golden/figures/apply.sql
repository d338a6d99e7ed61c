SELECT
  count_if(NOT __own AND NOT __trunc) AS events,
  count_if(__write AND __part = 'current') AS current,
  count_if(__write AND __part = 'prior') AS prior,
  count_if(__drop) AS removed,
  count_if(
    NOT __own AND NOT __trunc AND NOT __del AND NOT __gone AND coalesce(__del_before, true)
  ) AS inserts,
  count_if(
    NOT __own AND NOT __trunc AND NOT __del AND NOT __gone AND NOT coalesce(__del_before, true)
  ) AS updates,
  count_if(NOT __own AND NOT __trunc AND __del) AS deletes,
  count_if(__raised AND __write AND NOT __own) AS raised,
  count_if(
    true AND NOT __own AND NOT __trunc AND __op = 'I' AND NOT coalesce(__del_before, true)
  ) AS insert_of_existing,
  count_if(
    true AND NOT __own AND NOT __trunc AND __op = 'U' AND coalesce(__del_before, true)
  ) AS update_of_missing,
  count_if(
    NOT __own AND NOT __trunc AND __del AND coalesce(__del_before, true)
  ) AS delete_of_missing
FROM placed
