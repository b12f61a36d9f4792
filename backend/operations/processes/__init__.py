"""The processes of an instance: what each role runs, and what restarts it.

    instance      all processes of ``script/server``
    link          messages and sockets between the launcher and these processes
    reloads       requests to replace the application, and their answers
    roles         what a process of each role does
    server_rules  the limits of the HTTP server, from the settings
    preload       loads the application once, for all processes that are forked afterwards
    supervisor    forks the processes of the roles, and replaces those that die or hang
    restarts      when a dead process is started again, and when its deaths are reported
    banner        what the terminal shows when the service has started

``backend.serve`` is the command. ``script/server`` runs all roles under one supervisor, which has
loaded the application before it forks them: they share that memory, and start within milliseconds.
A container runs one role.
"""
