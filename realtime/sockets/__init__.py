"""What both kinds of sockets share: the connection, its queue, its threads."""
