SELECT
  `id`,
  `name`
FROM `lake`.`shop_internal`.`users_internal`
WHERE hdr__partition = 'current'
