SELECT
  `id`,
  min(
    IF(
      (__op = 'L' OR coalesce(array_contains(__unsent, 'hdr__read'), false)),
      '',
      concat(__ci, coalesce(__tail, ''))
    )
  ) AS __oldest
FROM events
GROUP BY `id`
