"""Connections that do not do their part: requests that never get whole, and those that are half sent at the end.

uvicorn waits without end for the head of a first request, and when it is told to stop, for the rest of a request that
has begun. Here a head must come within some seconds, and a server that stops lets go of what is not all there.
"""

import asyncio
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD = 10.0
"""Seconds in which the head of a request must have come since its connection was made."""


def patient(seconds: float = HEAD) -> type[H11Protocol]:
    """A protocol for uvicorn (`http=`) that waits so long for the head of a request."""

    class Patient(H11Protocol):
        waiting: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.waiting = self.loop.call_later(seconds, self.give_up)

        def give_up(self) -> None:
            """Nothing was asked yet, or only half of it."""
            if not self.cycle and not self.transport.is_closing():
                self.transport.close()

        def data_received(self, data: bytes) -> None:
            begun = self.cycle
            super().data_received(data)
            if self.cycle is not begun:
                self._whole()
            elif self._idle() and self.waiting is None:  # the head of a further request, not all of it
                self.waiting = self.loop.call_later(seconds, self._give_up_further, self.cycle)

        def _idle(self) -> bool:
            return bool(self.cycle and self.cycle.response_complete)

        def _give_up_further(self, last: Any) -> None:
            if self.cycle is last and not self.transport.is_closing():
                self.transport.close()

        def _whole(self) -> None:
            if self.waiting is not None:
                self.waiting.cancel()
                self.waiting = None

        def connection_lost(self, exc: Exception | None) -> None:
            self._whole()
            super().connection_lost(exc)

        def shutdown(self) -> None:
            """The server stops: what has not been asked in full will not be."""
            super().shutdown()
            cycle = self.cycle
            if cycle and not cycle.response_complete and cycle.more_body:
                self.transport.close()

    return Patient


class WithHeads:
    """HEAD is answered wherever GET is: with what GET's head would be, and no body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self.app({**scope, "method": "GET"}, receive, without_body)
