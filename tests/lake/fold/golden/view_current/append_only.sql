SELECT
  `id`,
  `name`
FROM `lake`.`shop_internal`.`users_internal`
WHERE hdr__partition = 'current' AND coalesce(hdr__operation NOT IN ('D', 'T'), true)
