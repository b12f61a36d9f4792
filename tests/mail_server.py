"""A mail server that answers when a test wants."""

from __future__ import annotations

import socketserver
import threading


class MailServer(socketserver.ThreadingTCPServer):
    """A mail server that accepts every email once ``may_answer`` is set."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, may_answer: threading.Event) -> None:
        self.accepted = 0
        self.connections = 0
        server = self

        class Dialogue(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                server.connections += 1
                may_answer.wait(60)
                self.wfile.write(b"220 ready\r\n")
                while line := self.rfile.readline():
                    verb = line[:4].upper().strip()
                    if verb == b"DATA":
                        self.wfile.write(b"354 go on\r\n")
                        while self.rfile.readline() not in (b".\r\n", b""):
                            pass
                        server.accepted += 1
                    self.wfile.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 ok\r\n")

        super().__init__(("127.0.0.1", 0), Dialogue)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
