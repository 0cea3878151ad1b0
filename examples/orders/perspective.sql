-- The tree that the orders' events are imported to, and its perspective.
select rewind.create_tree('example_orders');
select rewind.create_perspective('example_order_summary', 'example_orders', 'examples.apply_order(jsonb, rewind.event)');
