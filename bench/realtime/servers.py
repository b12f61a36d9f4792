"""``script/bench realtime --servers``: ASGI servers beside each other, for sockets only.

Each serves the same application (``fan_out``) in one process. Servers that aren't installed are
skipped:
``uv pip install uvicorn uvloop wsproto hypercorn daphne granian`` for all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from bench.realtime.receiver import Client

ROOT = Path(__file__).resolve().parents[2]
_APP = "bench.realtime.fan_out:application"
_UVICORN = ["uvicorn", "--uds", "{uds}", "--log-level", "warning", "--no-access-log", _APP]
_UVICORN += ["--ws-per-message-deflate", "false"]
_OURS = ["bench.realtime.ours", "{uds}"]
_GRANIAN = ["granian", "--uds", "{uds}", "--interface", "asgi", "--workers", "1"]
_GRANIAN += ["--no-access-log", "--log-level", "warning"]
SERVERS: dict[str, list[str]] = {
    "daphne": ["daphne", "-u", "{uds}", "--verbosity", "0", _APP],
    "uvicorn sansio uvloop": [*_UVICORN, "--ws", "websockets-sansio", "--loop", "uvloop"],
    "uvicorn sansio asyncio": [*_UVICORN, "--ws", "websockets-sansio", "--loop", "asyncio"],
    "uvicorn websockets uvloop": [*_UVICORN, "--ws", "websockets", "--loop", "uvloop"],
    "uvicorn wsproto uvloop": [*_UVICORN, "--ws", "wsproto", "--loop", "uvloop"],
    "uvicorn wire uvloop": [*_OURS, "uvloop"],
    "granian": [*_GRANIAN, "--loop", "uvloop", _APP],
    "hypercorn": ["hypercorn", "-b", "unix:{uds}", "-k", "uvloop", "--log-level", "warning", _APP],
}


@contextlib.contextmanager
def running(command: list[str], **more: str) -> Iterator[tuple[psutil.Process, str]]:
    """A server of this command, and the address of its socket."""
    with tempfile.TemporaryDirectory() as folder:
        uds = f"{folder}/server.sock"
        words = [word.replace("{uds}", uds) for word in command]
        process = subprocess.Popen(
            [sys.executable, "-m", *words], cwd=ROOT, env={**os.environ, **more}
        )
        try:
            _wait_for(uds, process)
            yield psutil.Process(process.pid), f"unix:{uds}"
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


def _wait_for(uds: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}")
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(uds)
            return
        time.sleep(0.05)
    raise RuntimeError("the server doesn't listen")


def _family(server: psutil.Process) -> list[psutil.Process]:
    return [server, *server.children(recursive=True)]


def _cpu(server: psutil.Process) -> float:
    return sum(sum(each.cpu_times()[:2]) for each in _family(server))


def _memory(server: psutil.Process) -> int:
    return sum(each.memory_info().rss for each in _family(server))


def fan_out(command: list[str], clients: int, seconds: float, rate: int, **more: str) -> Any:
    """Figures of one run: deliveries, milliseconds, CPU microseconds a delivery, KB a client."""
    with running(command, RATE=str(rate), CLIENTS=str(clients), **more) as (server, address):
        Client(address, "/").socket.close()
        time.sleep(0.5)
        empty = _memory(server)
        receiver = subprocess.Popen(
            [sys.executable, "-m", "bench.realtime.receiver", address, str(clients), str(seconds)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert receiver.stdout
        receiver.stdout.readline()
        begin, at = _cpu(server), time.monotonic()
        answer = receiver.stdout.readline()
        if not answer:
            raise RuntimeError("the receiver failed")
        results = json.loads(answer)
        took = time.monotonic() - at
        cpu = _cpu(server) - begin
        full = _memory(server)
        receiver.wait()
    results["share"] = results["received"] / (rate * seconds * clients)
    results["cpu_share"] = cpu / took
    results["us"] = cpu / max(1, results["received"]) * 1e6
    results["kb"] = (full - empty) / clients / 1024
    return results


def slow_reader(command: list[str], seconds: float, **more: str) -> Any:
    """What ten clients that never read do: memory, and whether the application sees it."""
    with running(command, RATE="4000", CLIENTS="10", **more) as (server, address):
        clients = [Client(address, "/") for _ in range(10)]
        for client in clients:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        before = _memory(server)
        time.sleep(seconds)
        after = _memory(server)
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(address.removeprefix("unix:"))
            asking.settimeout(20)
            asking.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b""
            with contextlib.suppress(TimeoutError):
                while piece := asking.recv(65536):
                    answer += piece
        figures_text = answer.rpartition(b"\r\n\r\n")[2].decode()
        return {"grown_mb": (after - before) / 1e6, "open and overflowed": figures_text}


def stopping(command: list[str], **more: str) -> Any:
    """Seconds from SIGTERM to the end with ten clients, and the close code that they see."""
    with running(command, RATE="1", **more) as (server, address):
        clients = [Client(address, "/") for _ in range(10)]
        begin = time.monotonic()
        server.terminate()
        codes = set()
        for client in clients:
            client.socket.settimeout(12)
            with contextlib.suppress(OSError):
                while data := client.socket.recv(65536):
                    client.frames(data)
                    if client.closed is not None:
                        break
            codes.add(client.closed)
            client.socket.close()
        with contextlib.suppress(psutil.TimeoutExpired):
            server.wait(12)
        return {"seconds": round(time.monotonic() - begin, 2), "codes": sorted(map(str, codes))}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="script/bench realtime --servers")
    parser.add_argument("--only", action="append", choices=list(SERVERS))
    parser.add_argument("--clients", type=int, action="append")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--rate", type=int, default=50)
    parser.add_argument("--writer", action="append", choices=("task", "spawned", "wire"))
    parser.add_argument("--fast", action="store_true", help="fan-out only")
    arguments = parser.parse_args(argv)
    for name in arguments.only or SERVERS:
        command = SERVERS[name]
        writers = ["wire"] if "wire" in name else arguments.writer or ["spawned"]
        if importlib.util.find_spec(command[0].partition(".")[0]) is None:
            print(f"{name}: not installed")
            continue
        for writer in writers:
            for clients in arguments.clients or [500, 1_000]:
                results = fan_out(
                    command, clients, arguments.seconds, arguments.rate, WRITER=writer
                )
                print(
                    f"{name:27} {writer:8} {clients:5} clients: {results['share']:6.1%} delivered, "
                    f"p50 {results['p50']:7.1f} p99 {results['p99']:7.1f} ms, "
                    f"{results['us']:5.1f} us CPU a frame, core {results['cpu_share']:4.0%}, "
                    f"{results['kb']:5.1f} KB a client (receiver {results['cpu']:.1f} s)",
                    flush=True,
                )
        if not arguments.fast:
            print(f"{name:27} never reading: {slow_reader(command, 8)}", flush=True)
            print(f"{name:27} SIGTERM: {stopping(command)}", flush=True)


if __name__ == "__main__":
    main()
