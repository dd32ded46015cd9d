"""Requests that arrive together are translated together; one that fails takes none of the others with it."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from regard.serving.errors import busy

A = TypeVar("A")
Work = Callable[[Hashable, Sequence[str]], Sequence[A]]


@dataclass(eq=False)
class _Piece(Generic[A]):
    text: str
    done: "asyncio.Future[A]"


@dataclass(eq=False)
class _Line(Generic[A]):
    """What waits for one kind of answer."""

    pieces: deque[_Piece[A]] = field(default_factory=deque)


class Batcher(Generic[A]):
    """Texts in, answers out. What is asked with one key (the language, say) is answered in one call of `work`.

    A call of `work` runs in a thread, `side_by_side` of them at a time; what arrives meanwhile waits, and goes together
    with whatever has come by then: the busier the server, the larger the batches.
    """

    def __init__(self, work: Work[A], *, most: int, waiting: int, gather: float = 0.003, side_by_side: int = 1) -> None:
        self.work, self.most, self.limit, self.gather = work, most, waiting, gather
        self.waiting = 0
        """Texts that no answer has come for."""
        self.sizes: deque[int] = deque(maxlen=1000)
        """Of the latest batches."""
        self.begun = 0
        """Batches since the start."""
        self._lines: dict[Hashable, _Line[A]] = {}
        self._threads = ThreadPoolExecutor(side_by_side, "translate")
        self._free = asyncio.Semaphore(side_by_side)
        self._tasks: set[asyncio.Task[None]] = set()

    async def answer(self, key: Hashable, texts: Sequence[str]) -> list[A]:
        """An answer for each text, in order. Refused with a 503 where too many wait already."""
        if self.waiting and self.waiting + len(texts) > self.limit:  # alone, a request is bounded by its own limits
            raise busy("The server is busy: too many sentences are waiting to be translated")
        loop = asyncio.get_running_loop()
        pieces = [_Piece[A](text, loop.create_future()) for text in texts]
        self.waiting += len(pieces)
        try:
            if key not in self._lines:
                self._lines[key] = _Line()
                self._start(self._serve(key))
            self._lines[key].pieces.extend(pieces)
            return list(await asyncio.gather(*(piece.done for piece in pieces)))
        finally:
            self.waiting -= len(pieces)
            for piece in pieces:  # one that nobody waits for any longer need not be translated
                piece.done.cancel()

    async def _serve(self, key: Hashable) -> None:
        """Batch after batch, as threads are free, until nothing waits for this kind of answer."""
        await asyncio.sleep(self.gather)
        line = self._lines[key]
        while line.pieces:
            await self._free.acquire()
            self._start(self._answered_in_turn(key, self._taken(line)))
        del self._lines[key]

    async def _answered_in_turn(self, key: Hashable, batch: list[_Piece[A]]) -> None:
        """With a thread that is free, which it then is again."""
        try:
            if batch:
                await self._answered(key, batch)
        finally:
            self._free.release()

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _taken(self, line: _Line[A]) -> list[_Piece[A]]:
        batch: list[_Piece[A]] = []
        while line.pieces and len(batch) < self.most:
            piece = line.pieces.popleft()
            if not piece.done.done():
                batch.append(piece)
        return batch

    async def _answered(self, key: Hashable, batch: list[_Piece[A]]) -> None:
        loop = asyncio.get_running_loop()
        self.sizes.append(len(batch))
        self.begun += 1
        try:
            answers = await loop.run_in_executor(self._threads, self.work, key, [piece.text for piece in batch])
            for piece, answer in zip(batch, answers, strict=True):
                if not piece.done.done():
                    piece.done.set_result(answer)
        except Exception as error:
            if len(batch) > 1:  # which of them it was is found by asking for each alone
                for piece in batch:
                    await self._answered(key, [piece])
            elif not batch[0].done.done():
                batch[0].done.set_exception(error)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
