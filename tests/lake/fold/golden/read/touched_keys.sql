SELECT
  `part`,
  `at`,
  `wall`,
  `photo`,
  min(concat(__ci, coalesce(__tail, ''))) AS __oldest
FROM events
GROUP BY `part`, `at`, `wall`, `photo`
