"""What a server counts, in the text form that Prometheus reads."""

from collections import Counter
from collections.abc import Iterable, Mapping

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counts since the start."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.texts = self.characters = 0
        self.detected: Counter[str] = Counter()
        self._took: dict[str, list[int]] = {}
        self._sums: Counter[str] = Counter()

    def request(self, path: str, status: int, seconds: float) -> None:
        self.requests[path, status] += 1
        counts = self._took.setdefault(path, [0] * (len(SECONDS) + 1))
        counts[next((place for place, most in enumerate(SECONDS) if seconds <= most), len(SECONDS))] += 1
        self._sums[path] += seconds  # type: ignore[assignment]

    def told(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """All of it, with what stands as it is now."""
        requests = [
            ((("path", path), ("status", str(status))), n) for (path, status), n in sorted(self.requests.items())
        ]
        lines = [
            *_family("regard_requests_total", "counter", "Requests by path and status.", requests),
            *_family("regard_texts_total", "counter", "Texts that were asked for.", [((), self.texts)]),
            *_family("regard_characters_total", "counter", "Characters of those texts.", [((), self.characters)]),
            *self._histogram(),
        ]
        for name, (said, value) in gauges.items():
            lines += _family(f"regard_{name}", "gauge", said, [((), value)])
        return "\n".join(lines) + "\n"

    def _histogram(self) -> list[str]:
        name = "regard_request_seconds"
        lines = [f"# HELP {name} How long requests took.", f"# TYPE {name} histogram"]
        for path, counts in sorted(self._took.items()):
            total = 0
            for most, count in zip((*map(str, SECONDS), "+Inf"), counts, strict=True):
                total += count
                lines.append(_line(f"{name}_bucket", (("path", path), ("le", most)), total))
            lines.append(_line(f"{name}_sum", (("path", path),), self._sums[path]))
            lines.append(_line(f"{name}_count", (("path", path),), total))
        return lines


def _family(name: str, kind: str, said: str, values: Iterable[tuple[Labels, float]]) -> list[str]:
    return [f"# HELP {name} {said}", f"# TYPE {name} {kind}", *(_line(name, labels, value) for labels, value in values)]


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(each)}"' for key, each in labels)
    return f"{name}{{{inside}}} {value:g}" if inside else f"{name} {value:g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
