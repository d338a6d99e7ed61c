SELECT
  `id`,
  min(__oldest) AS __oldest
FROM newest
WHERE concat(__ci, coalesce(__tail, '')) >= __oldest
GROUP BY `id`
