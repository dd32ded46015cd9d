"""A server on the loopback, in a thread of the tests."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI


class Live:
    """A server that listens; `stop` it, as if its machine had gone."""

    def __init__(self, app: FastAPI, port: int = 0, *, http: Any = "auto", graceful: int = 2) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", port))
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        settings = {"log_level": "critical", "timeout_graceful_shutdown": graceful, "ws": "none", "http": http}
        self.server = uvicorn.Server(uvicorn.Config(app, **settings))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]}, daemon=True)
        self.thread.start()
        until = time.monotonic() + 20
        while not self.server.started and time.monotonic() < until:
            time.sleep(0.01)
        assert self.server.started

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(20)
        self.socket.close()


@contextmanager
def live(app: FastAPI, **options: Any) -> Iterator[Live]:
    running = Live(app, **options)
    try:
        yield running
    finally:
        running.stop()
