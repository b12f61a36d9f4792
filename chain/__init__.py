"""The chain: transactions that are monitored until they are final, and contract events.

``docs/architecture.md`` draws the rooms.
"""
