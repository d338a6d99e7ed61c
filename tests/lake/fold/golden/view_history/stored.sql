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
  hdr__was_current_to_timestamp
FROM `lake`.`shop_internal`.`users_internal`
WHERE hdr__partition IN ('current', 'prior')
