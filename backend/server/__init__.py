"""The HTTP server: each process has one event loop, and threads that run the application.

    process      one process: its event loop and its shutdown
    listeners    binds sockets, TCP and Unix
    acceptor     accepts new connections from listening sockets
    shares       how connections are shared by the processes of one socket
    context      what the connections of one process share
    connections  the open connections: their number by address, deadlines, unsent bytes
    dispatcher   gives work to threads, fairly between client addresses
    work         what threads run: requests, and turns of long responses
    handoff      passes WebSocket handshakes to the realtime process, with the connection itself
    limits       the limits of one process
    refusals     the errors that the server raises
    connection/  one connection: parser, states, deadlines, order of responses
    requests/    heads and bodies as they arrive
    responses/   heads, compression and long bodies as they leave

A thread gets a request only when it is complete, and hands the response to the event loop at once.
Slow clients cost memory within limits and never a thread. ``docs/server.md`` lists the limits.
"""
