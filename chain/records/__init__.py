"""The chain's records as classes of the object service, and the rules of each class.

Add what a class asks of its objects here. ``monitor`` and ``indexing`` decide what is stored.
"""
