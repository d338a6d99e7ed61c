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
