SELECT
  `id`,
  min(__oldest) AS __oldest
FROM newest
WHERE __stored.late
GROUP BY `id`
