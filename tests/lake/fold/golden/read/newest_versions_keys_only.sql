SELECT
  `id`,
  CAST(NULL AS string) AS `name`,
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
      _file,
      'pos',
      _pos,
      'late',
      concat(hdr__change_identifier, coalesce(hdr__sequence_tail, '')) >= __oldest
    ) AS struct<part:string,op:string,`from`:timestamp,`to`:timestamp,ins:timestamp,mod:timestamp,wcf:timestamp,wct:timestamp,file:string,pos:bigint,late:boolean>
  ) AS __stored
FROM (
  SELECT
    /*+ BROADCAST(k) */ s.*,
    k.__oldest
  FROM (
    SELECT
      `id`,
      hdr__change_identifier,
      hdr__sequence_tail,
      hdr__source_position,
      hdr__operation,
      hdr__timestamp,
      hdr__unsent,
      hdr__old_key,
      hdr__partition,
      hdr__from_timestamp,
      hdr__to_timestamp,
      hdr__inserted_timestamp,
      hdr__modified_timestamp,
      hdr__was_current_from_timestamp,
      hdr__was_current_to_timestamp,
      _file,
      _pos
    FROM `lake`.`shop_internal`.`users_internal`
    WHERE (hdr__partition = 'current' OR (hdr__partition = 'prior')) AND true
  ) s
  JOIN touched k
  ON s.`id` = k.`id`
)
