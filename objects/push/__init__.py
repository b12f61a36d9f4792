"""Push notifications: their targets, their delivery by workers, and the services that send them."""
