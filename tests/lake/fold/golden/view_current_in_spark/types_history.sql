WITH
  newest AS (
    SELECT
      `part`,
      `at`,
      `wall`,
      `photo`,
      (__late OR coalesce(__older = __seq, false)) AS __open,
      NOT (__del OR (__late OR coalesce(__older = __seq, false))) AS __shown,
      IF(__older IS NULL, NULL, __data_file) AS __data_file,
      IF(__older IS NULL, NULL, __at) AS __at
    FROM (
      SELECT
        *,
        lag(__seq) OVER (
          PARTITION BY `part`, `at`, `wall`, `photo` ORDER BY __seq DESC, __data_file, __at
        ) IS NULL AS __last,
        lead(__seq) OVER (
          PARTITION BY `part`, `at`, `wall`, `photo` ORDER BY __seq DESC, __data_file, __at
        ) AS __older
      FROM (
        SELECT
          `part`,
          `at`,
          `wall`,
          `photo`,
          concat(hdr__change_identifier, coalesce(hdr__sequence_tail, '')) AS __seq,
          coalesce(hdr__operation IN ('D', 'd'), false) AS __del,
          hdr__copy_change_identifier IS NULL AS __late,
          _file AS __data_file,
          _pos AS __at
        FROM `lake`.`shop_internal`.`users_internal`
        WHERE hdr__partition = 'changes'
      )
    )
    WHERE __last
  )
SELECT
  `part`,
  `at`,
  `wall`,
  `photo`,
  `tags`,
  `place`,
  `odd `` name`
FROM `lake`.`shop_internal`.`users_internal` hdr__row
LEFT ANTI JOIN newest k
ON hdr__row.`part` = k.`part`
  AND hdr__row.`at` = k.`at`
  AND hdr__row.`wall` = k.`wall`
  AND hdr__row.`photo` = k.`photo`
  AND NOT (
    hdr__row.hdr__partition = 'changes'
    AND k.__shown
    AND (k.__data_file IS NULL OR (k.__data_file = hdr__row._file AND k.__at = hdr__row._pos))
  )
WHERE (hdr__partition = 'current') OR hdr__partition = 'changes'
UNION ALL
SELECT
  `part`,
  `at`,
  `wall`,
  `photo`,
  `tags`,
  `place`,
  `odd `` name`
FROM (
  SELECT
    *,
    lag(__seq) OVER (
      PARTITION BY `part`, `at`, `wall`, `photo`
      ORDER BY __seq DESC, __trunc, __del DESC, __position DESC NULLS LAST, IF(
        __del,
        '',
        sha1(
          to_json(
            named_struct(
              'odd ` name',
              `odd `` name`,
              'place',
              `place`,
              'tags',
              `tags`,
              'hdr__unsent',
              array_sort(__unsent)
            )
          )
        )
      ) DESC
    ) IS NULL AS __last
  FROM (
    SELECT
      `part`,
      `at`,
      `wall`,
      `photo`,
      `tags`,
      `place`,
      `odd `` name`,
      concat(hdr__change_identifier, coalesce(hdr__sequence_tail, '')) AS __seq,
      coalesce(hdr__operation IN ('D', 'd'), false) AS __del,
      hdr__source_position AS __position,
      coalesce(hdr__source_position = 'truncate', false) AS __trunc,
      from_json(hdr__unsent, 'array<string>') AS __unsent
    FROM `lake`.`shop_internal`.`users_internal` s
    LEFT SEMI JOIN (
      SELECT
        `part`,
        `at`,
        `wall`,
        `photo`
      FROM newest
      WHERE __open
    ) k
    ON s.`part` = k.`part` AND s.`at` = k.`at` AND s.`wall` = k.`wall` AND s.`photo` = k.`photo`
    WHERE hdr__partition = 'changes'
      OR hdr__partition = 'current'
      OR (hdr__partition = 'prior' AND hdr__operation IN ('D', 'd') AND hdr__to_timestamp IS NULL)
  )
)
WHERE __last AND NOT __del
