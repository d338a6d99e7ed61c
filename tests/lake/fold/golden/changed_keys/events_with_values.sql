SELECT
  e.`id`,
  IF(
    c.__values IS NOT NULL
      AND coalesce(
        (
          array_contains(e.__unsent, 'name') OR array_contains(e.__unsent, 'title')
        ) <> array_contains(e.__unsent, 'hdr__all_but'),
        false
      ),
    c.__values.`name`,
    e.`name`
  ) AS `name`,
  __ci,
  __tail,
  __position,
  __op,
  __ts,
  __unsent,
  __former,
  IF(
    e.__stored IS NOT NULL
      AND (
        NOT (
          IF(
            c.__values IS NOT NULL
              AND coalesce(
                (
                  array_contains(e.__unsent, 'name') OR array_contains(e.__unsent, 'title')
                ) <> array_contains(e.__unsent, 'hdr__all_but'),
                false
              ),
            c.__values.`name`,
            e.`name`
          ) <=> e.`name`
        )
      ),
    named_struct(
      'part',
      e.__stored.`part`,
      'op',
      CAST(NULL AS STRING),
      'from',
      e.__stored.`from`,
      'to',
      e.__stored.`to`,
      'ins',
      e.__stored.`ins`,
      'mod',
      e.__stored.`mod`,
      'wcf',
      e.__stored.`wcf`,
      'wct',
      e.__stored.`wct`,
      'file',
      e.__stored.`file`,
      'pos',
      e.__stored.`pos`,
      'late',
      e.__stored.`late`
    ),
    e.__stored
  ) AS __stored
FROM (
  SELECT
    *,
    to_json(array(CAST(`id` AS STRING))) AS __key,
    concat(__ci, coalesce(__tail, '')) AS __seq
  FROM events
) e
LEFT JOIN carried c
ON __former IS NOT NULL
  AND coalesce(size(__unsent), 0) > 0
  AND c.__key = e.__key
  AND c.__seq = e.__seq
