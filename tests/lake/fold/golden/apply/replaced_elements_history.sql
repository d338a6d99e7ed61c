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
  records AS (
    SELECT
      *,
      min(
        IF((`line` IS NULL) AND NOT __lost, __ts, NULL)
      ) OVER (PARTITION BY `id`, __seq) AS __since
    FROM (
      SELECT
        *,
        NOT __trunc
          AND __counts IS NOT NULL
          AND NOT coalesce(__position = __counts, false) AS __lost
      FROM (
        SELECT
          *,
          max(IF((`line` IS NULL), __position, NULL)) OVER (PARTITION BY `id`, __seq) AS __counts
        FROM sequenced
      )
    )
  ),
  settled AS (
    SELECT
      `id`,
      `line`,
      IF(__lost, NULL, `amount`) AS `amount`,
      __ci,
      __tail,
      IF(__lost, 'truncate', __position) AS __position,
      IF(__lost, 'D', __op) AS __op,
      IF(__lost OR __trunc, coalesce(__since, __ts), __ts) AS __ts,
      IF(__lost, NULL, __unsent) AS __unsent,
      IF(__lost, NULL, __former) AS __former,
      __del OR __lost AS __del,
      __trunc OR __lost AS __trunc,
      __stored,
      __seq,
      __own,
      __since
    FROM records
    WHERE NOT (__lost AND (`line` IS NULL) AND __stored IS NULL)
  ),
  following AS (
    SELECT
      *,
      last_value(
        IF((`line` IS NULL), __ci, NULL), true
      ) OVER (
        PARTITION BY `id`
        ORDER BY __seq DESC, (`line` IS NULL)
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS __next_ci,
      last_value(
        IF((`line` IS NULL), coalesce(__tail, ''), NULL), true
      ) OVER (
        PARTITION BY `id`
        ORDER BY __seq DESC, (`line` IS NULL)
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS __next_tail,
      last_value(
        IF((`line` IS NULL), __since, NULL), true
      ) OVER (
        PARTITION BY `id`
        ORDER BY __seq DESC, (`line` IS NULL)
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS __next_ts,
      last_value(
        IF((`line` IS NULL), __seq, NULL), true
      ) OVER (
        PARTITION BY `id`
        ORDER BY __seq DESC, (`line` IS NULL)
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS __next_seq,
      lead(__seq) OVER (PARTITION BY `id`, `line`, __trunc ORDER BY __seq) AS __own_seq
    FROM settled
  ),
  replaced AS (
    SELECT
      `id`,
      `line`,
      `amount`,
      __ci,
      __tail,
      __position,
      __op,
      __ts,
      __unsent,
      __former,
      __stored,
      __seq,
      __del,
      __own,
      __trunc
    FROM following
    UNION ALL
    SELECT
      `id`,
      `line`,
      CAST(NULL AS int) AS `amount`,
      __next_ci AS __ci,
      nullif(__next_tail, '') AS __tail,
      'truncate' AS __position,
      'D' AS __op,
      __next_ts AS __ts,
      CAST(NULL AS ARRAY<STRING>) AS __unsent,
      CAST(NULL AS STRING) AS __former,
      CAST(
        NULL AS struct<part:string,op:string,`from`:timestamp,`to`:timestamp,ins:timestamp,mod:timestamp,wcf:timestamp,wct:timestamp,file:string,pos:bigint,late:boolean>
      ) AS __stored,
      __next_seq AS __seq,
      true AS __del,
      false AS __own,
      true AS __trunc
    FROM following
    WHERE NOT __del
      AND NOT (`line` IS NULL)
      AND __next_seq IS NOT NULL
      AND NOT coalesce(__own_seq IN (__seq, __next_seq), false)
  ),
  ranked AS (
    SELECT
      *,
      coalesce(lag(__seq) OVER (PARTITION BY `id`, `line` ORDER BY __seq) = __seq, false)
        OR coalesce(
          lead(__seq) OVER (PARTITION BY `id`, `line` ORDER BY __seq) = __seq, false
        ) AS __tie
    FROM replaced
  ),
  collapsed AS (
    SELECT
      `id`,
      `line`,
      `amount`,
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
      __place AS __stored
    FROM (
      SELECT
        *,
        row_number() OVER (
          PARTITION BY `id`, `line`, __seq
          ORDER BY __trunc, __del DESC, __position DESC NULLS LAST, IF(
            __tie AND NOT __del,
            sha1(to_json(named_struct('amount', `amount`, 'hdr__unsent', array_sort(__unsent)))),
            ''
          ) DESC, __ts, __own DESC
        ) AS __rank,
        max(__stored) OVER (PARTITION BY `id`, `line`, __seq) AS __place
      FROM ranked
    )
    WHERE __rank = 1
  ),
  effective AS (
    SELECT
      *
    FROM (
      SELECT
        *,
        __trunc
          AND coalesce(
            lag(__del) OVER (PARTITION BY `id`, `line` ORDER BY __seq),
            NOT (__own AND coalesce(__stored.op IN ('D', 'd'), false))
          ) AS __gone
      FROM collapsed
    )
    WHERE NOT __gone OR __stored IS NOT NULL
  ),
  numbered AS (
    SELECT
      *,
      row_number() OVER (PARTITION BY `id`, `line`, __gone ORDER BY __seq) AS __nth,
      lag(__del) OVER (PARTITION BY `id`, `line`, __gone ORDER BY __seq) AS __del_before,
      coalesce(
        sum(CAST(__del AS INT)) OVER (
          PARTITION BY `id`, `line`, __gone
          ORDER BY __seq
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        0
      ) AS __life,
      min(__stored.ins) OVER (PARTITION BY `id`, `line`) AS __ins,
      named_struct('id', `id`, 'line', `line`, 'amount', `amount`) AS __orig
    FROM effective
  ),
  carried AS (
    SELECT
      *,
      last_value(
        IF(
          __del AND NOT (__own AND __nth = 1),
          NULL,
          named_struct('id', `id`, 'line', `line`, 'amount', `amount`)
        ),
        true
      ) OVER (
        PARTITION BY `id`, `line`, __gone
        ORDER BY __seq
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS __before
    FROM numbered
  ),
  shown AS (
    SELECT
      `id`,
      `line`,
      IF(__del, __before.`amount`, `amount`) AS `amount`,
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
      __orig
    FROM carried
  ),
  folded AS (
    SELECT
      *,
      max(
        IF(__own AND __nth = 1, __stored.`from`, __ts)
      ) OVER (
        PARTITION BY `id`, `line`, __gone
        ORDER BY __seq
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS __from,
      IF(
        lead(__seq) OVER (PARTITION BY `id`, `line`, __gone ORDER BY __seq) IS NULL,
        CAST(NULL AS TIMESTAMP),
        max(
          IF(__own AND __nth = 1, __stored.`from`, __ts)
        ) OVER (
          PARTITION BY `id`, `line`, __gone
          ORDER BY __seq
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING
        )
      ) AS __to,
      lead(__seq) OVER (PARTITION BY `id`, `line`, __gone ORDER BY __seq) IS NULL AS __last,
      CASE
        WHEN __del THEN __op
        WHEN __own AND __nth = 1 THEN __op
        WHEN __op = 'L' AND NOT coalesce(NOT __del_before, false) THEN 'L'
        WHEN __op IN ('i', 'u') THEN IF(coalesce(NOT __del_before, false), 'u', 'i')
        WHEN coalesce(NOT __del_before, false) THEN 'U'
        ELSE 'I'
      END AS __new_op
    FROM shown
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
          AND `amount` <=> __orig.`amount`
        ) AS __same
      FROM (
        SELECT
          *,
          IF(
            __last AND NOT __gone AND NOT __del AND NOT (`line` IS NULL), 'current', 'prior'
          ) AS __part,
          __from > __ts AS __raised
        FROM folded
      )
    )
  )
SELECT
  __part AS `hdr__partition`,
  unhex(sha1(concat_ws('\b', CAST(`id` AS STRING), CAST(`line` AS STRING)))) AS `hdr__key_hash`,
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
  to_json(__unsent) AS `hdr__unsent`,
  __former AS `hdr__old_key`,
  CAST(NULL AS string) AS `hdr__copy_change_identifier`,
  CAST(NULL AS string) AS `hdr__apply_change_identifier`,
  CAST(NULL AS string) AS `hdr__state`,
  CAST(
    NULL AS struct<id:string,file:string,offset:bigint,rule:string,error:string,raw:binary>
  ) AS `hdr__quarantine`,
  `id` AS `id`,
  `line` AS `line`,
  `amount` AS `amount`
FROM placed
WHERE __write
