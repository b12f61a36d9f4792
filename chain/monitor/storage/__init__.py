"""The statements on ``chain_transaction``, and what its rows say.

Writers take their rows in the order of their ids, so that two never wait for each other. Each one
sets ``next_check_at``: a process that finds it unchanged knows that no other came between.
"""
