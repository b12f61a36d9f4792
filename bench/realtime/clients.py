"""Clients of a socket server, thousands in one process: ``load.c``, compiled when it is needed.

A program in C, since the clients share two cores with what is measured: a frame costs them about a
microsecond, which every table shows as their share of a core.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.failure import BenchFailure

HERE = Path(__file__).parent
_QUIET = 2.0
"""Seconds without a frame, after which none is expected of an idle server any more."""
_IDLE = 0.2
"""The share of a core below which a server is idle."""


@dataclass(frozen=True, slots=True)
class Received:
    """What the clients have got: the numbers of frames and when each was read, in microseconds of
    the monotonic clock, pair by pair; frames without a number; frames whose number wasn't above
    that of the one before; connections that were lost; and what the clients cost."""

    numbers: array[int]
    times: array[int]
    other: int
    disorder: int
    lost: int
    close_code: int
    cpu: float
    seconds: float

    @property
    def count(self) -> int:
        return len(self.numbers)

    @property
    def span(self) -> float:
        """Seconds from the first frame to the last."""
        return (max(self.times) - min(self.times)) / 1e6 if self.times else 0.0

    @property
    def core(self) -> float:
        """The clients' share of a core."""
        return self.cpu / self.seconds if self.seconds else 0.0

    def latencies(self, written: Sequence[int]) -> array[int]:
        """Microseconds from when each number was written to each of its frames, sorted."""
        return array(
            "q",
            sorted(
                at - written[number] for number, at in zip(self.numbers, self.times, strict=True)
            ),
        )


class Clients:
    """The clients of one run, all open."""

    def __init__(self, process: subprocess.Popen[str], output: Path, open_seconds: float) -> None:
        self._process = process
        self._output = output
        self.pid = process.pid
        self.open_seconds = open_seconds

    def clear(self) -> None:
        """Forget what has come until now."""
        self._ask("clear")

    def count(self) -> int:
        """How many numbered frames have come."""
        return int(self._ask("count"))

    def wait_for(self, frames: int, worked: Callable[[], float], patience: float = 30.0) -> None:
        """Return when so many have come; or none has for a while, in which the server was idle
        (``worked`` tells its CPU seconds); or patience is at its end."""
        until, last, since, before = time.monotonic() + patience, -1, time.monotonic(), worked()
        while time.monotonic() < until:
            received = self.count()
            if received >= frames:
                return
            quiet = time.monotonic() - since
            if received != last or quiet > _QUIET:
                if received == last and worked() - before < quiet * _IDLE:
                    return
                last, since, before = received, time.monotonic(), worked()
            time.sleep(0.05)

    def stop(self, first: int) -> Received:
        """Close all of them; what they have got, from this number on."""
        figures: dict[str, Any] = json.loads(self._ask("stop"))
        self._process.wait(10)
        pairs = array("Q")
        pairs.frombytes(self._output.read_bytes())
        del figures["numbered"]
        numbers, times = pairs[::2], pairs[1::2]
        if numbers and min(numbers) < first:  # they came late, after ``clear``
            selected = [place for place, number in enumerate(numbers) if number >= first]
            numbers = array("Q", [numbers[place] for place in selected])
            times = array("Q", [times[place] for place in selected])
        return Received(numbers, times, **figures)

    def _ask(self, command: str) -> str:
        assert self._process.stdin
        assert self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{command}\n")
            self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise BenchFailure(f"the clients ended: {_errors(self._process)}")
        return answer


@contextlib.contextmanager
def clients(
    folder: Path,
    port: int,
    path: str,
    count: int,
    marker: str,
    script: Callable[[int], Sequence[str]] | None = None,
) -> Iterator[Clients]:
    """So many clients, each from a loopback address of its own, when all are open.

    ``marker`` stands before the number in a frame. ``script`` names the messages of a client, each
    of which the server answers with one; the first one is answered before the rest is sent.
    """
    output = folder / "frames"
    command = [_program(folder), f"127.0.0.1:{port}", path, str(count), marker, str(output)]
    if script:
        script_file = folder / "script"
        script_file.write_text(
            "\n\n".join("\n".join(script(number)) for number in range(count)) + "\n"
        )
        command.append(str(script_file))
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout
        words = process.stdout.readline().split()
        if not words:
            raise BenchFailure(f"the clients can't be opened: {_errors(process)}")
        yield Clients(process, output, float(words[1]))
    finally:
        process.kill()
        process.wait()
        output.unlink(missing_ok=True)


def _program(folder: Path) -> str:
    program = folder / "load"
    if not program.exists():
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise BenchFailure("the clients need a C compiler: apt-get install gcc libc6-dev")
        command = [compiler, "-O2", "-o", str(program), str(HERE / "load.c")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise BenchFailure(f"load.c isn't compiled: {done.stderr.strip()[-400:]}")
    return str(program)


def _errors(process: subprocess.Popen[str]) -> str:
    process.kill()
    assert process.stderr
    return process.stderr.read().strip()[-400:]


def percentile(ordered: Sequence[int], share: float) -> float:
    """Of sorted microseconds, in milliseconds."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1000 if ordered else 0.0
