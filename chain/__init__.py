"""Chain records: transactions, contract events."""
