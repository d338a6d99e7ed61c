SELECT
  IF(
    d.__seq IS NOT NULL AND t.__seq IS NOT NULL,
    filter(
      array(
        IF(d.__part <=> t.__stored.part, NULL, 'hdr__partition'),
        IF(d.__new_op <=> t.__stored.op, NULL, 'hdr__operation'),
        IF(d.__from <=> t.__stored.`from`, NULL, 'hdr__from_timestamp'),
        IF(d.__to <=> t.__stored.`to`, NULL, 'hdr__to_timestamp'),
        IF((false) OR d.`name` <=> t.`name`, NULL, 'name')
      ),
      name -> name IS NOT NULL
    ),
    array()
  )
FROM d
FULL OUTER JOIN t
