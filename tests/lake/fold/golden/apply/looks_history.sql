WITH
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
  placed AS (
    SELECT
      *,
      __kept AND NOT __same AS __write,
      __stored IS NOT NULL AND NOT (__kept AND __same) AS __drop
    FROM (
      SELECT
        *,
        NOT __gone AND (true) AS __kept,
        (
          __own
          AND __stored.part = __part
          AND __stored.`from` <=> __from
          AND __stored.`to` <=> __to
          AND __stored.op <=> __new_op
          AND `name` <=> __orig.`name`
        ) AS __same
      FROM (
        SELECT
          *,
          IF(__last AND NOT __gone AND NOT __del, 'current', 'prior') AS __part,
          __from > __ts AS __raised
        FROM folded
      )
    )
  )
SELECT
  __part AS `hdr__partition`,
  unhex(sha1(concat_ws('\b', CAST(`id` AS STRING)))) AS `hdr__key_hash`,
  __ci AS `hdr__change_identifier`,
  __tail AS `hdr__sequence_tail`,
  __position AS `hdr__source_position`,
  __new_op AS `hdr__operation`,
  __ts AS `hdr__timestamp`,
  __from AS `hdr__from_timestamp`,
  IF(__part = 'current', NULL, __to) AS `hdr__to_timestamp`,
  IF(
    __part = 'current',
    coalesce(__ins, IF(__new_op = 'L', __from, TIMESTAMP '2026-01-01 00:00:00+00:00')),
    NULL
  ) AS `hdr__inserted_timestamp`,
  IF(
    __part = 'current', IF(__same, __stored.mod, TIMESTAMP '2026-01-01 00:00:00+00:00'), NULL
  ) AS `hdr__modified_timestamp`,
  IF(
    __own,
    coalesce(__stored.wcf, __stored.mod, TIMESTAMP '2026-01-01 00:00:00+00:00'),
    TIMESTAMP '2026-01-01 00:00:00+00:00'
  ) AS `hdr__was_current_from_timestamp`,
  IF(
    __part = 'current',
    NULL,
    IF(
      __own AND NOT (__own AND __stored.part = 'current'),
      coalesce(__stored.wct, TIMESTAMP '2026-01-01 00:00:00+00:00'),
      TIMESTAMP '2026-01-01 00:00:00+00:00'
    )
  ) AS `hdr__was_current_to_timestamp`,
  to_json(
    IF(
      __op = 'L' AND __new_op <> 'L',
      array_union(
        coalesce(__unsent, CAST(array() AS ARRAY<STRING>)), array('hdr__read', 'hdr__loaded')
      ),
      __unsent
    )
  ) AS `hdr__unsent`,
  __former AS `hdr__old_key`,
  CAST(NULL AS string) AS `hdr__copy_change_identifier`,
  CAST(NULL AS string) AS `hdr__apply_change_identifier`,
  CAST(NULL AS string) AS `hdr__state`,
  CAST(
    NULL AS struct<id:string,file:string,offset:bigint,rule:string,error:string,raw:binary>
  ) AS `hdr__quarantine`,
  `id` AS `id`,
  `name` AS `name`
FROM placed
WHERE __write
