-- The tree that the orders' events are imported to, and its perspective.
select rewind.create_tree('orders');
select rewind.create_perspective('order_summary', 'orders', 'examples.apply_order(jsonb, rewind.event)');
