SELECT
  f.`id` AS `id`,
  f.`name` AS `name`,
  '00000000000000000000000000000000000' AS hdr__change_identifier,
  '~000001' AS hdr__sequence_tail,
  CAST(NULL AS STRING) AS hdr__source_position,
  __op AS hdr__operation,
  coalesce(f.__ts, TIMESTAMP '2026-01-01 00:00:00+00:00') AS hdr__timestamp,
  CAST(NULL AS STRING) AS hdr__unsent,
  CAST(NULL AS STRING) AS hdr__old_key
FROM (
  SELECT
    coalesce(l.`id`, c.`id`) AS `id`,
    IF(l.__live, l.`name`, NULL) AS `name`,
    IF(l.__live, l.__ts, NULL) AS __ts,
    CASE
      WHEN l.__live IS NULL THEN IF(c.__live, NULL, NULL)
      WHEN NOT l.__live THEN IF(c.__live, 'd', NULL)
      WHEN NOT coalesce(c.__live, false) THEN 'i'
      WHEN NOT (l.`name` <=> c.`name`) THEN 'u'
    END AS __op
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
  LEFT OUTER JOIN (
    SELECT
      c.*
    FROM (
      SELECT
        `id`,
        `name`,
        NOT (hdr__operation IN ('D', 'd')) AS __live,
        concat(hdr__change_identifier, coalesce(hdr__sequence_tail, '')) AS __seq
      FROM `lake`.`shop_internal`.`users_internal`
      WHERE hdr__partition = 'current'
    ) c
    LEFT SEMI JOIN (
      SELECT
        `id`
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
      )
    ) k
    ON k.`id` = c.`id`
  ) c
  ON l.`id` = c.`id`
  WHERE NOT coalesce(c.__seq > '00000000000000000000000000000000000~000001', false)
) f
WHERE __op IS NOT NULL
