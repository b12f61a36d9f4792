"""The HTTP server: one event loop a process, and threads that run the application.

    listening      binds sockets, TCP and Unix
    workers        forks the processes and restarts those that die
    process        one process: its event loop, its threads, its shutdown
    accepting      new connections from listening sockets
    connection     the HTTP/1.1 protocol of one connection (parsing by httptools)
    heads          request line and headers → WSGI environment, or a refusal
    bodies         request bodies: memory, then a temporary file, within limits
    dispatcher     complete requests → threads, fairly between client addresses
    sending        responses → the transport, with back-pressure
    connections    what a process counts: connections by address, deadlines, memory
    handoff        WebSocket handshakes → the realtime process, with the connection itself

A thread sees a request only when it is complete, and gives its response away at once, so slow
clients cost memory within limits and never a thread. ``docs/server.md`` has the limits.
"""
