WITH
  touched AS (
    SELECT
      `id`
    FROM `lake`.`shop_internal`.`users_internal`
    WHERE hdr__partition = 'changes'
  ),
  events AS (
    SELECT
      `id`,
      `name`,
      hdr__change_identifier AS __ci,
      hdr__sequence_tail AS __tail,
      hdr__source_position AS __position,
      hdr__operation AS __op,
      hdr__timestamp AS __ts,
      from_json(hdr__unsent, 'array<string>') AS __unsent,
      hdr__old_key AS __former,
      CAST(
        NULL AS struct<part:string,op:string,`from`:timestamp,`to`:timestamp,ins:timestamp,mod:timestamp,wcf:timestamp,wct:timestamp,file:string,pos:bigint,late:boolean>
      ) AS __stored
    FROM `lake`.`shop_internal`.`users_internal`
    WHERE hdr__partition = 'changes'
    UNION ALL
    SELECT
      `id`,
      `name`,
      hdr__change_identifier AS __ci,
      hdr__sequence_tail AS __tail,
      hdr__source_position AS __position,
      hdr__operation AS __op,
      hdr__timestamp AS __ts,
      from_json(hdr__unsent, 'array<string>') AS __unsent,
      hdr__old_key AS __former,
      CAST(
        named_struct(
          'part',
          hdr__partition,
          'op',
          hdr__operation,
          'from',
          hdr__from_timestamp,
          'to',
          hdr__to_timestamp,
          'ins',
          hdr__inserted_timestamp,
          'mod',
          hdr__modified_timestamp,
          'wcf',
          hdr__was_current_from_timestamp,
          'wct',
          hdr__was_current_to_timestamp,
          'file',
          '',
          'pos',
          0L,
          'late',
          false
        ) AS struct<part:string,op:string,`from`:timestamp,`to`:timestamp,ins:timestamp,mod:timestamp,wcf:timestamp,wct:timestamp,file:string,pos:bigint,late:boolean>
      ) AS __stored
    FROM `lake`.`shop_internal`.`users_internal` s
    LEFT SEMI JOIN touched k
    ON s.`id` = k.`id`
    WHERE hdr__partition IN ('current', 'prior')
  ),
  sequenced AS (
    SELECT
      *,
      concat(__ci, coalesce(__tail, '')) AS __seq,
      coalesce(__op IN ('D', 'd'), false) AS __del,
      __stored IS NOT NULL AS __own,
      coalesce(__position = 'truncate', false) AS __trunc
    FROM events
  ),
  ranked AS (
    SELECT
      *,
      coalesce(lag(__seq) OVER (PARTITION BY `id` ORDER BY __seq) = __seq, false)
        OR coalesce(lead(__seq) OVER (PARTITION BY `id` ORDER BY __seq) = __seq, false) AS __tie
    FROM sequenced
  ),
  collapsed AS (
    SELECT
      `id`,
      `name`,
      __ci,
      __tail,
      __position,
      __op,
      __ts,
      __unsent,
      __former,
      __seq,
      __del,
      __own,
      __trunc,
      __place AS __stored,
      false AS __gone
    FROM (
      SELECT
        *,
        row_number() OVER (
          PARTITION BY `id`, __seq
          ORDER BY __trunc, __del DESC, __position DESC NULLS LAST, IF(
            __tie AND NOT __del,
            sha1(
              to_json(
                named_struct(
                  'name',
                  IF(
                    coalesce(
                      (
                        array_contains(__unsent, 'name') OR array_contains(__unsent, 'title')
                      ) <> array_contains(__unsent, 'hdr__all_but'),
                      false
                    ),
                    NULL,
                    `name`
                  ),
                  'hdr__unsent',
                  array_sort(__unsent)
                )
              )
            ),
            ''
          ) DESC, __ts, __own DESC
        ) AS __rank,
        max(__stored) OVER (PARTITION BY `id`, __seq) AS __place
      FROM ranked
    )
    WHERE __rank = 1
  ),
  numbered AS (
    SELECT
      *,
      row_number() OVER (PARTITION BY `id`, __gone ORDER BY __seq) AS __nth,
      lag(__del) OVER (PARTITION BY `id`, __gone ORDER BY __seq) AS __del_before,
      coalesce(
        sum(CAST(__del AS INT)) OVER (
          PARTITION BY `id`, __gone ORDER BY __seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        0
      ) AS __life,
      min(__stored.ins) OVER (PARTITION BY `id`) AS __ins,
      named_struct('id', `id`, 'name', `name`) AS __orig
    FROM collapsed
  ),
  filled AS (
    SELECT
      `id`,
      IF(
        __del,
        `name`,
        IF(
          last_value(
            IF(
              NOT __del
                AND (
                  NOT coalesce(
                    (
                      array_contains(__unsent, 'name') OR array_contains(__unsent, 'title')
                    ) <> array_contains(__unsent, 'hdr__all_but'),
                    false
                  )
                  OR __former IS NOT NULL
                  OR (
                    __own
                    AND __nth = 1
                    AND __op NOT IN ('I', 'i', 'L')
                    AND coalesce(
                      (
                        array_contains(__unsent, 'name') OR array_contains(__unsent, 'title')
                      ) <> array_contains(__unsent, 'hdr__all_but'),
                      false
                    )
                  )
                ),
              named_struct('v', `name`),
              NULL
            ),
            true
          ) OVER (
            PARTITION BY `id`, __gone, __life
            ORDER BY __seq
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
          ) IS NOT NULL,
          last_value(
            IF(
              NOT __del
                AND (
                  NOT coalesce(
                    (
                      array_contains(__unsent, 'name') OR array_contains(__unsent, 'title')
                    ) <> array_contains(__unsent, 'hdr__all_but'),
                    false
                  )
                  OR __former IS NOT NULL
                  OR (
                    __own
                    AND __nth = 1
                    AND __op NOT IN ('I', 'i', 'L')
                    AND coalesce(
                      (
                        array_contains(__unsent, 'name') OR array_contains(__unsent, 'title')
                      ) <> array_contains(__unsent, 'hdr__all_but'),
                      false
                    )
                  )
                ),
              named_struct('v', `name`),
              NULL
            ),
            true
          ) OVER (
            PARTITION BY `id`, __gone, __life
            ORDER BY __seq
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
          ).v,
          CASE
            WHEN first_value(
              IF(
                NOT __del
                  AND (
                    NOT coalesce(
                      (
                        array_contains(__unsent, 'name') OR array_contains(__unsent, 'title')
                      ) <> array_contains(__unsent, 'hdr__all_but'),
                      false
                    )
                    OR __former IS NOT NULL
                  ),
                (__op = 'L' OR coalesce(array_contains(__unsent, 'hdr__read'), false)),
                NULL
              ),
              true
            ) OVER (
              PARTITION BY `id`, __gone, __life
              ORDER BY __seq
              ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
            ) THEN first_value(
              IF(
                NOT __del
                  AND (
                    NOT coalesce(
                      (
                        array_contains(__unsent, 'name') OR array_contains(__unsent, 'title')
                      ) <> array_contains(__unsent, 'hdr__all_but'),
                      false
                    )
                    OR __former IS NOT NULL
                  ),
                named_struct('v', `name`),
                NULL
              ),
              true
            ) OVER (
              PARTITION BY `id`, __gone, __life
              ORDER BY __seq
              ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
            ).v
            WHEN first_value(
              IF(
                NOT __del
                  AND (
                    NOT coalesce(
                      (
                        array_contains(__unsent, 'name') OR array_contains(__unsent, 'title')
                      ) <> array_contains(__unsent, 'hdr__all_but'),
                      false
                    )
                    OR __former IS NOT NULL
                  ),
                (__op = 'L' OR coalesce(array_contains(__unsent, 'hdr__read'), false)),
                NULL
              ),
              true
            ) OVER (
              PARTITION BY `id`, __gone, __life
              ORDER BY __seq
              ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
            ) IS NULL AND __own AND NOT coalesce(
              max(__del) OVER (
                PARTITION BY `id`, __gone, __life
                ORDER BY __seq
                ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
              ),
              false
            ) AND NOT coalesce(
              NOT last_value(IF(__own, __del, NULL), true) OVER (
                PARTITION BY `id`, __gone
                ORDER BY __seq
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
              ),
              false
            ) THEN `name`
          END
        )
      ) AS `name`,
      __ci,
      __tail,
      __position,
      __op,
      __ts,
      __unsent,
      __former,
      __seq,
      __del,
      __own,
      __trunc,
      __stored,
      __gone,
      __ins,
      __nth,
      __del_before,
      __orig,
      last_value(
        IF(
          NOT __del
            AND (
              NOT coalesce(
                (
                  array_contains(__unsent, 'name') OR array_contains(__unsent, 'title')
                ) <> array_contains(__unsent, 'hdr__all_but'),
                false
              )
              OR __former IS NOT NULL
              OR (
                __own
                AND __nth = 1
                AND __op NOT IN ('I', 'i', 'L')
                AND coalesce(
                  (
                    array_contains(__unsent, 'name') OR array_contains(__unsent, 'title')
                  ) <> array_contains(__unsent, 'hdr__all_but'),
                  false
                )
              )
            ),
          named_struct('v', `name`),
          NULL
        ),
        true
      ) OVER (
        PARTITION BY `id`, __gone, __life
        ORDER BY __seq
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) IS NOT NULL AS __told
    FROM numbered
  ),
  carried AS (
    SELECT
      *,
      last_value(
        IF(__del AND NOT (__own AND __nth = 1), NULL, named_struct('id', `id`, 'name', `name`)),
        true
      ) OVER (
        PARTITION BY `id`, __gone ORDER BY __seq ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS __before
    FROM filled
  ),
  shown AS (
    SELECT
      `id`,
      IF(__del, __before.`name`, `name`) AS `name`,
      __ci,
      __tail,
      __position,
      __op,
      __ts,
      __unsent,
      __former,
      __seq,
      __del,
      __own,
      __trunc,
      __stored,
      __gone,
      __ins,
      __nth,
      __del_before,
      __orig,
      __told
    FROM carried
  ),
  observed AS (
    SELECT
      `id`,
      `name`,
      __ci,
      __tail,
      __position,
      __op,
      __ts,
      __unsent,
      __former,
      __seq,
      __del,
      __own,
      __trunc,
      __stored,
      __gone
        OR (
          (__op = 'L' OR coalesce(array_contains(__unsent, 'hdr__read'), false))
          AND NOT __del
          AND coalesce(NOT lag(__del) OVER (PARTITION BY `id`, __gone ORDER BY __seq), false)
          AND lag(__told) OVER (PARTITION BY `id`, __gone ORDER BY __seq)
          AND `name` <=> lag(`name`) OVER (PARTITION BY `id`, __gone ORDER BY __seq)
        ) AS __gone,
      __ins,
      __nth,
      __del_before,
      __orig
    FROM shown
  ),
  folded AS (
    SELECT
      *,
      max(
        IF(__own AND __nth = 1, __stored.`from`, __ts)
      ) OVER (
        PARTITION BY `id`, __gone ORDER BY __seq ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS __from,
      IF(
        lead(__seq) OVER (PARTITION BY `id`, __gone ORDER BY __seq) IS NULL,
        CAST(NULL AS TIMESTAMP),
        max(
          IF(__own AND __nth = 1, __stored.`from`, __ts)
        ) OVER (
          PARTITION BY `id`, __gone ORDER BY __seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING
        )
      ) AS __to,
      lead(__seq) OVER (PARTITION BY `id`, __gone ORDER BY __seq) IS NULL AS __last,
      CASE
        WHEN __del THEN __op
        WHEN __own AND __nth = 1 THEN __op
        WHEN (
          __op = 'L' OR coalesce(array_contains(__unsent, 'hdr__loaded'), false)
        ) AND NOT coalesce(NOT __del_before, false) THEN 'L'
        WHEN __op IN ('i', 'u') THEN IF(coalesce(NOT __del_before, false), 'u', 'i')
        WHEN coalesce(NOT __del_before, false) THEN 'U'
        ELSE 'I'
      END AS __new_op
    FROM observed
  ),
  versions AS (
    SELECT
      `id`,
      `name`,
      hdr__key_hash,
      hdr__from_timestamp,
      hdr__to_timestamp,
      upper(hdr__partition) AS hdr__store,
      hdr__operation,
      (hdr__operation IN ('D', 'd')) AS hdr__deleted,
      coalesce(
        hdr__was_current_from_timestamp, hdr__modified_timestamp
      ) AS hdr__was_current_from_timestamp,
      hdr__was_current_to_timestamp,
      concat(hdr__change_identifier, coalesce(hdr__sequence_tail, '')) AS __seq
    FROM `lake`.`shop_internal`.`users_internal` s
    LEFT ANTI JOIN touched k
    ON s.`id` = k.`id`
    WHERE hdr__partition IN ('current', 'prior')
    UNION ALL
    SELECT
      `id`,
      `name`,
      unhex(sha1(concat_ws('\b', CAST(`id` AS STRING)))),
      __from,
      __to,
      upper(coalesce(__stored.part, 'changes')),
      __new_op,
      __del,
      __stored.wcf,
      __stored.wct,
      __seq
    FROM folded
    WHERE NOT __gone
  )
SELECT
  `id`,
  `name`,
  hdr__key_hash,
  hdr__from_timestamp,
  hdr__to_timestamp,
  hdr__store,
  hdr__operation,
  hdr__deleted,
  hdr__was_current_from_timestamp,
  hdr__was_current_to_timestamp
FROM versions
