"""Transactions that the service signs and broadcasts itself.

``outgoing`` simulates, signs, stores and broadcasts one; ``nonces`` gives out nonces without gaps;
``maintenance`` replaces what is stuck, until everything is final.
"""
