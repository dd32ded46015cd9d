"""Who may ask, and how often: API keys, requests a minute, requests open at a time."""

import hmac
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from regard.serving.errors import Refused
from regard.serving.settings import ServerSettings

REMEMBERED = 10_000
"""Clients whose requests are counted; of more, the one not heard of for longest is forgotten."""


class Clients:
    """Counts requests by key, or by address where there are no keys."""

    def __init__(self, settings: ServerSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings, self.clock = settings, clock
        self._recent: OrderedDict[str, deque[float]] = OrderedDict()
        self._open: dict[str, int] = {}

    def check_key(self, key: str | None) -> None:
        """Refused where keys are needed and this is none of them. Each is compared in constant time."""
        keys = self.settings.api_keys
        if not keys:
            return
        if not key:
            raise Refused(403, "Please contact the server operator to get an API key")
        given = key.encode("utf-8", "replace")
        if not sum(hmac.compare_digest(each.encode(), given) for each in keys):
            raise Refused(403, "Invalid API key")

    @contextmanager
    def counted(self, client: str) -> Iterator[None]:
        """While a request of a client is answered."""
        self._count(client)
        if self._open.get(client, 0) >= self.settings.at_once:
            raise Refused(429, f"Slowdown: at most {self.settings.at_once} requests at a time", {"Retry-After": "1"})
        self._open[client] = self._open.get(client, 0) + 1
        try:
            yield
        finally:
            self._open[client] -= 1
            if not self._open[client]:
                del self._open[client]

    def _count(self, client: str) -> None:
        most, now = self.settings.per_minute, self.clock()
        if most is None:
            return
        recent = self._recent.setdefault(client, deque())
        self._recent.move_to_end(client)
        while recent and recent[0] <= now - 60:
            recent.popleft()
        if len(recent) >= most:
            wait = max(1, round(recent[0] + 60 - now))
            raise Refused(429, f"Slowdown: {most} per 1 minute", {"Retry-After": str(wait)})
        recent.append(now)
        while len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)
