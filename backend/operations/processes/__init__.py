"""The processes of an instance: what each role runs, and what keeps them running.

    instance     all processes of ``script/server``, from what the launcher tells
    link         the messages and sockets between the two
    reloads      requests to replace the application, and their answers
    roles        what a process of each role does, and what it has of its own
    preloading   loads the application once, for all the processes that are forked afterwards
    supervisor   forks the roles' processes, and replaces those that die or hang
    restarts     when a dead process is started again, and when its deaths are reported
    signs        signs of life, in memory that the processes share with their supervisor
    report       what was restarted, in a file that ``/ready``, ``doctor`` and the admin read

``backend.serve`` is the command. ``script/server`` runs all roles under one supervisor, which has
loaded the application before it forks them: they share that memory, and are there within
milliseconds. A container runs one role.
"""
