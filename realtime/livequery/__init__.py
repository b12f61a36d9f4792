"""Live queries: subscriptions, and the notifications that committed changes cause.

``consumer`` speaks Parse's protocol, ``engine`` holds the subscriptions of a process.
"""
