SELECT
  `id`,
  hdr__old_key AS __former,
  concat(hdr__change_identifier, coalesce(hdr__sequence_tail, '')) AS __seq
FROM `lake`.`shop_internal`.`users_internal`
WHERE hdr__old_key IS NOT NULL AND hdr__partition IN ('current', 'prior')
