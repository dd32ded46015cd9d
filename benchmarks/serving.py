"""Many clients at once: a server of its own on the loopback, requests of mixed lengths, and what became of them.

    python benchmarks/serving.py [FOLDER] [--clients 200] [--seconds 60] [--engine auto]

Without a folder, the package's translator. Prints requests and sentences a second, the times they took,
every status that came, and the server's memory after the warm-up, half way, and at the end.
"""

import argparse
import asyncio
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import httpx

SENTENCES = (
    "Let's go.", "I go to school.", "Where is the station?", "The black cat ate the mouse in the kitchen.",
    "She told me that she would come tomorrow if the weather was good enough to take the bicycle.", "Thank you!",
    "What time does the last train leave, and from which platform does it go?",
)  # fmt: skip


def resident(pid: int) -> float:
    """MiB of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


async def client(
    number: int, http: httpx.AsyncClient, until: float, target: str, found: list[tuple[int, float, int]]
) -> None:
    dice = random.Random(number)
    while time.monotonic() < until:
        texts = [" ".join(dice.choices(SENTENCES, k=dice.randint(1, 4))) for _ in range(dice.choice((1, 1, 1, 4)))]
        started = time.monotonic()
        try:
            answer = await http.post("/translate", json={"q": texts, "source": "en", "target": target})
            status, wait = answer.status_code, float(answer.headers.get("retry-after", 0))
        except httpx.HTTPError as error:
            print(type(error).__name__, error)
            status, wait = 0, 0.0
        found.append(
            (
                status,
                time.monotonic() - started,
                sum(text.count(".") + text.count("!") + text.count("?") for text in texts),
            )
        )
        await asyncio.sleep(wait or dice.random() * 0.02)


async def load(url: str, clients: int, seconds: float, target: str) -> list[tuple[int, float, int]]:
    found: list[tuple[int, float, int]] = []
    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as http:
        until = time.monotonic() + seconds
        await asyncio.gather(*(client(number, http, until, target, found) for number in range(clients)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--target", default="es")
    given = parser.parse_args()
    folder = [given.folder] if given.folder else []
    command = [sys.executable, "-m", "regard", "serve", *folder, "--port", "0", "--engine", given.engine]
    server = subprocess.Popen([*command, "--set", f"at_once={given.clients}"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        said, url = server.stdout.readline().strip(), server.stdout.readline().split()[1]
        for _ in range(600):
            try:
                httpx.get(f"{url}/health")
                break
            except httpx.HTTPError:
                time.sleep(0.1)
        asyncio.run(load(url, given.clients, min(10, given.seconds / 3), given.target))
        held = [resident(server.pid)]
        started = time.monotonic()
        found = []
        for _ in range(2):
            found += asyncio.run(load(url, given.clients, given.seconds / 2, given.target))
            held.append(resident(server.pid))
        took = time.monotonic() - started
    finally:
        server.terminate()
        server.wait(60)
    good = sorted(seconds for status, seconds, _ in found if status == 200)
    print(said)
    statuses = dict(Counter(status for status, _, _ in found))
    print(f"{given.clients} clients, {took:.0f} s: {len(found):,} requests, by status {statuses}")
    print(
        f"{len(good) / took:.0f} requests and {sum(n for s, _, n in found if s == 200) / took:.0f} sentences a second"
    )
    quantiles = statistics.quantiles(good, n=100)
    print(
        f"seconds: median {quantiles[49]:.3f}, p90 {quantiles[89]:.3f}, p99 {quantiles[98]:.3f}, longest {good[-1]:.3f}"
    )
    print("memory: {:.0f} MiB after the warm-up, {:.0f} half way, {:.0f} at the end".format(*held))


if __name__ == "__main__":
    main()
