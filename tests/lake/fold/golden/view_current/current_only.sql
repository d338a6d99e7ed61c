SELECT
  `id`,
  `name`
FROM `lake`.`shop_internal`.`users_internal` s
LEFT ANTI JOIN (
  SELECT
    `id`
  FROM `lake`.`shop_internal`.`users_internal`
  WHERE hdr__partition = 'changes'
) k
ON s.`id` = k.`id`
WHERE hdr__partition = 'current'
UNION ALL
SELECT
  `id`,
  `name`
FROM (
  SELECT
    *,
    lag(__seq) OVER (
      PARTITION BY `id`
      ORDER BY __seq DESC, __trunc, __del DESC, __position DESC NULLS LAST, IF(
        __tie AND NOT __del,
        sha1(to_json(named_struct('name', `name`, 'hdr__unsent', array_sort(__unsent)))),
        ''
      ) DESC
    ) IS NULL AS __last
  FROM (
    SELECT
      *,
      coalesce(lag(__seq) OVER (PARTITION BY `id` ORDER BY __seq) = __seq, false)
        OR coalesce(lead(__seq) OVER (PARTITION BY `id` ORDER BY __seq) = __seq, false) AS __tie
    FROM (
      SELECT
        `id`,
        `name`,
        concat(hdr__change_identifier, coalesce(hdr__sequence_tail, '')) AS __seq,
        coalesce(hdr__operation IN ('D', 'd'), false) AS __del,
        hdr__source_position AS __position,
        coalesce(hdr__source_position = 'truncate', false) AS __trunc,
        from_json(hdr__unsent, 'array<string>') AS __unsent
      FROM `lake`.`shop_internal`.`users_internal`
      WHERE hdr__partition = 'changes'
      UNION ALL
      SELECT
        `id`,
        `name`,
        concat(hdr__change_identifier, coalesce(hdr__sequence_tail, '')) AS __seq,
        coalesce(hdr__operation IN ('D', 'd'), false) AS __del,
        hdr__source_position AS __position,
        coalesce(hdr__source_position = 'truncate', false) AS __trunc,
        from_json(hdr__unsent, 'array<string>') AS __unsent
      FROM `lake`.`shop_internal`.`users_internal` s
      LEFT SEMI JOIN (
        SELECT
          `id`
        FROM `lake`.`shop_internal`.`users_internal`
        WHERE hdr__partition = 'changes' AND hdr__copy_change_identifier IS NULL
      ) k
      ON s.`id` = k.`id`
      WHERE hdr__partition = 'current'
        OR (hdr__partition = 'prior' AND hdr__operation IN ('D', 'd'))
    )
  )
)
WHERE __last AND NOT __del
