-- One row per day, the newest first; an order that is in the file twice counts once.
SELECT ordered_on, count() AS orders,
       round(sum(units * unit_price * (1 - discount_pct / 100)), 2) AS revenue,
       countIf(status = 'refunded') AS refunds
FROM (SELECT DISTINCT * FROM file('data/orders.csv'))
WHERE ordered_on BETWEEN {first:Date} AND {last:Date}
GROUP BY ordered_on ORDER BY ordered_on DESC
