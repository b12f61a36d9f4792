"""Contract ABIs: checked, and used to decode logs and to encode and decode calls."""
