"""SQL for the trees of ``objects.core``: conditions, orders, rows.

Parameters only: nothing from a client is in the text. ``compiler`` is where a query begins.
"""
