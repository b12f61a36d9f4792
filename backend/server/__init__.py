"""The HTTP server: each process has one event loop, and threads that run the application.

    limits         the limits of one process
    listening      binds sockets, TCP and Unix
    workers        forks the processes and restarts those that die
    process        one process: its event loop and its shutdown
    core           what the connections of one process share
    accepting      new connections from listening sockets
    connection     one connection: its requests, their responses, and its end
    states         the states of a connection, and which may follow which
    parser         bytes of a connection → requests, within limits (parsing by httptools)
    head_cache     heads that clients repeat, which are parsed once
    drain          bodies of refused requests that a proxy sends to their end
    pipeline       what a connection still has to answer
    deadlines      rates and times of one connection
    flow           a connection's transport, with its pauses in both directions
    heads          request line and headers → WSGI environment, or a refusal
    bodies         request bodies: memory, then a temporary file, within limits
    requests       one complete request, as a thread runs it
    dispatcher     jobs → threads, fairly between client addresses
    responses      response heads, compression, errors of the server
    jobs           what threads run: requests, and turns of long responses
    sending        long responses → the transport, with back-pressure
    refusals       the errors that the server raises
    connections    open connections: their number by address, deadlines, unsent bytes
    handoff        WebSocket handshakes → the realtime process, with the connection itself

A thread gets a request only when it is complete, and hands the response to the event loop at once.
Slow clients cost memory within limits and never a thread. ``docs/server.md`` lists the limits.
"""
