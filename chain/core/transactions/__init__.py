"""Transactions: encoding, fees, and ``states.next_state``, which decides every change of status."""
