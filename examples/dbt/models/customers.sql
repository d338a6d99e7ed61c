select customer, count(*) as orders, sum(amount) as revenue
from {{ source('shop', 'orders') }}
where paid
group by customer
