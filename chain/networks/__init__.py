"""Networks and their providers as operators configure and watch them."""
