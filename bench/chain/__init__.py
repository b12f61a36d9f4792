"""``script/bench chain``: events from a chain into rows, and transactions followed, beside others.

``command`` runs it all; what is measured runs in processes of its own (``within``), so that no
contender profits from, or suffers by, what another has left in memory.
"""
