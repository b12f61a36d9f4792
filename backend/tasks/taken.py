"""Tasks that a worker has taken and not acknowledged, in Redis.

Redis gives those of a worker that was killed to others after ``visibility_timeout``. A worker that
lives renews its hold on its tasks, however long they take. Celery acknowledges a task on the
connection over which it came. If that was lost meanwhile, the task would be run again, so tasks
that have ended are removed here as well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from time import time
from typing import Any, Final

import redis
from celery import signals
from celery.worker import state
from kombu.transport import redis as redis_transport

_MAX_ENDED: Final = 10_000
_ended: deque[str] = deque(maxlen=_MAX_ENDED)


@signals.task_postrun.connect
def _note_end(task_id: str, **kwargs: Any) -> None:
    request = state.requests.get(task_id)
    if request is not None:
        _ended.append(request.message.delivery_tag)


def renew(client: redis.Redis, consumer: Any) -> None:
    """Renew the hold on the tasks of this worker. Raises ``RedisError``."""
    channel = consumer.task_consumer and consumer.task_consumer.channel
    if not channel:
        return
    now = time()
    # Also those of earlier connections.
    waiting_and_running = _tags(state.reserved_requests, state.active_requests)
    # Those that have ended aren't added again.
    taken = dict.fromkeys([*channel.qos._delivered, *waiting_and_running], now)
    ended = [*_ended]
    by_time = f"{channel.global_keyprefix}{channel.unacked_index_key}"
    with client.pipeline() as commands:
        if taken:
            commands.zadd(by_time, taken, xx=True)
        if ended:
            commands.zrem(by_time, *ended)
            commands.hdel(f"{channel.global_keyprefix}{channel.unacked_key}", *ended)
        commands.execute()
    for _ in ended:
        _ended.popleft()


class QoS(redis_transport.QoS):
    """Gives tasks back when its connection was lost, but for those that are running: they are still
    held, and would be run once more."""

    def restore_unacked(self, client: Any = None) -> None:
        # They are numbers otherwise, 0 among them.
        ends = (state.should_stop, state.should_terminate)
        if all(end is None or end is False for end in ends):
            for tag in _tags(state.active_requests):
                self._delivered.pop(tag, None)
        super().restore_unacked(client)


def _tags(*kinds: Any) -> Iterator[str]:
    for requests in kinds:
        # Copied at once: threads remove those that have ended.
        for reference in [*requests.data]:
            request = reference()
            if request is not None:
                yield request.message.delivery_tag
