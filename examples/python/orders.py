"""Appends an order's events, one of them late, and reads what has become of it.

The tree and the perspective are those of examples/orders. Usage: orders.py DATABASE_URL ORDER
"""

import sys

import psycopg
from psycopg.types.json import Jsonb

APPEND = "select * from rewind.append_events(p_tree => 'example_orders', p_stream => %s, p_events => %s)"


def append(connection, order, *events):
    return connection.execute(APPEND, [order, Jsonb(events)]).fetchall()


def status(connection, order):
    # Any worker would do this; here nobody has to run one. It commits as it goes, so it needs autocommit.
    connection.execute("call rewind.catch_up('example_order_summary')")
    (model,) = connection.execute("select model from lens.example_order_summary where stream_key = %s", [order]).fetchone()
    return model["status"]


def main(url, order):
    with psycopg.connect(url, autocommit=True) as connection:
        append(
            connection,
            order,
            {"type": "placed", "time": "2026-03-02T09:00:00Z", "payload": {"total": 80}},
            {"type": "paid", "time": "2026-03-02T09:06:00Z", "payload": {"amount": 80}},
            {"type": "shipped", "time": "2026-03-02T10:05:00Z"},
        )
        print(order, "is", status(connection, order))
        # The customer's phone was offline.
        append(connection, order, {"type": "cancelled", "time": "2026-03-02T09:30:00Z"})
        print(order, "is", status(connection, order))


if __name__ == "__main__":
    main(*sys.argv[1:])
