SELECT
  CAST(NULL AS bigint) AS `id`,
  CAST(NULL AS string) AS `name`,
  '00000000000000000000000000000000000' AS hdr__change_identifier,
  '~000001a' AS hdr__sequence_tail,
  CAST(NULL AS STRING) AS hdr__source_position,
  'T' AS hdr__operation,
  coalesce(NULL, TIMESTAMP '2026-01-01 00:00:00+00:00') AS hdr__timestamp,
  CAST(NULL AS STRING) AS hdr__unsent,
  CAST(NULL AS STRING) AS hdr__old_key
UNION ALL
SELECT
  l.`id` AS `id`,
  l.`name` AS `name`,
  '00000000000000000000000000000000000' AS hdr__change_identifier,
  '~000001b' AS hdr__sequence_tail,
  CAST(NULL AS STRING) AS hdr__source_position,
  'L' AS hdr__operation,
  coalesce(l.__ts, TIMESTAMP '2026-01-01 00:00:00+00:00') AS hdr__timestamp,
  CAST(NULL AS STRING) AS hdr__unsent,
  CAST(NULL AS STRING) AS hdr__old_key
FROM (
  SELECT
    `id`,
    `name`,
    __ts,
    __live
  FROM (
    SELECT
      *,
      row_number() OVER (
        PARTITION BY `id`
        ORDER BY hdr__change_identifier DESC, hdr__sequence_tail DESC NULLS LAST, __live, to_json(
          named_struct('id', `id`, 'name', `name`)
        ) DESC
      ) AS __rank
    FROM (
      SELECT
        *,
        hdr__operation = 'L' AS __live,
        hdr__timestamp AS __ts
      FROM `lake`.`shop_internal`.`users_internal`
      WHERE hdr__partition = 'reload' AND hdr__operation IN ('L', 'D')
    )
  )
  WHERE __rank = 1
) l
WHERE l.__live
