SELECT
  n.*
FROM (
  SELECT
    l.`id`,
    min(l.__seq) AS __oldest
  FROM links l
  JOIN (
    SELECT
      to_json(array(CAST(`id` AS STRING))) AS __key,
      __oldest
    FROM known
  ) t
  ON l.__former = t.__key AND l.__seq >= t.__oldest
  GROUP BY l.`id`
) n
LEFT ANTI JOIN known k
ON n.`id` = k.`id` AND k.__oldest <= n.__oldest
