"""A function that wants too much memory fails alone."""

from __future__ import annotations

import pytest

from tests.other_process import other_process


@pytest.mark.slow
@pytest.mark.usefixtures("emptied")
@pytest.mark.django_db
def test_a_function_that_wants_too_much_memory_fails_and_the_process_goes_on() -> None:
    with other_process(MEMORY_LIMIT="1024") as process:

        def call(name: str, **params: int) -> tuple[int, object]:
            status, answer = process.call("POST", f"/functions/{name}", params)
            return status, answer.get("result", answer.get("code"))

        worker = call("cloudProcess")
        assert call("cloudHungry", megabytes=1) == (200, 1024 * 1024)
        for _ in range(3):
            assert call("cloudHungry", megabytes=4096) == (400, 141)
        assert call("cloudProcess") == worker
        assert process.call("POST", "/classes/Note", {"text": "a"})[0] == 201
