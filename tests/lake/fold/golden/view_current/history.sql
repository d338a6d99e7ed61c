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
    WHERE hdr__partition = 'current'
      OR (hdr__partition = 'prior' AND hdr__operation IN ('D', 'd') AND hdr__to_timestamp IS NULL)
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
  newest AS (
    SELECT
      *,
      row_number() OVER (
        PARTITION BY `id`
        ORDER BY __seq DESC, __trunc, __del DESC, __position DESC NULLS LAST, IF(
          __tie AND NOT __del,
          sha1(to_json(named_struct('name', `name`, 'hdr__unsent', array_sort(__unsent)))),
          ''
        ) DESC, __ts, __own DESC
      ) AS __rank
    FROM ranked
  )
SELECT
  `id`,
  `name`
FROM `lake`.`shop_internal`.`users_internal` s
LEFT ANTI JOIN touched k
ON s.`id` = k.`id`
WHERE hdr__partition = 'current'
UNION ALL
SELECT
  `id`,
  `name`
FROM newest
WHERE __rank = 1 AND NOT __del
