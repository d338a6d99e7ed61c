SELECT
  count_if(__write AND NOT __drop) AS restored,
  count_if(__drop AND NOT __write) AS surplus,
  count_if(__write AND __drop) AS corrected,
  count_if(__write AND __part = 'current') AS current,
  count_if(__write AND __part = 'prior') AS prior,
  count_if(__drop) AS removed
FROM placed
