"""Wallets of users: an address on each network, whose key a custodian holds.

``custody`` makes a user's wallets, lists them, and signs where the custodian does. Custodians are
adapters (``local``, ``http``, ``mock``), chosen by ``WALLET_CUSTODIAN``.
"""
