SELECT
  `id`,
  `name`,
  hdr__change_identifier,
  hdr__operation,
  hdr__timestamp,
  hdr__key_hash,
  hdr__inserted_timestamp,
  upper(hdr__partition) AS hdr__store
FROM `lake`.`shop_internal`.`users_internal`
WHERE hdr__partition IN ('changes', 'retained')
