"""Pages behind emailed links: verify an address, choose a password."""
