SELECT
  `id`,
  min(__oldest) AS __oldest
FROM (
  SELECT
    *
  FROM touched
  UNION ALL
  SELECT
    CAST(from_json(__former, 'array<string>')[0] AS bigint) AS `id`,
    concat(__ci, coalesce(__tail, '')) AS __oldest
  FROM events
  WHERE __former IS NOT NULL AND coalesce(size(__unsent), 0) > 0
)
GROUP BY `id`
