SELECT
  `id`,
  min(concat(__ci, coalesce(__tail, ''))) AS __oldest
FROM events
GROUP BY `id`
