"""The learning rate over time."""

import math

import pytest

from regard.training.schedule import Schedule
from regard.training.settings import ScheduleSettings


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("constant", {1: 0.1, 5: 0.5, 10: 1.0, 60: 1.0, 110: 1.0}),
        ("inverse_root", {1: 0.1, 5: 0.5, 10: 1.0, 40: 0.5, 90: 1 / 3}),
        ("linear", {5: 0.5, 10: 1.0, 60: 0.6, 110: 0.2, 200: 0.2}),
        ("cosine", {5: 0.5, 10: 1.0, 60: 0.6, 110: 0.2, 35: 0.2 + 0.8 * (1 + math.cos(math.pi / 4)) / 2}),
    ],
)
def test_schedules_follow_their_formulas(name: str, shares: dict[int, float]) -> None:
    schedule = Schedule(ScheduleSettings(name=name, warmup=10, final=0.2), last=110)  # type: ignore[arg-type]
    assert {step: schedule.share(step) for step in shares} == pytest.approx(shares)


def test_where_the_clock_ends_a_run_the_rate_falls_by_the_clock() -> None:
    schedule = Schedule(ScheduleSettings(name="linear", warmup=0))
    assert schedule.share(500) == 1
    schedule.clock_gone = 0.75
    assert schedule.share(500) == pytest.approx(0.25)


def test_plateau_falls_when_evaluations_stop_getting_better_and_remembers() -> None:
    schedule = Schedule(ScheduleSettings(name="plateau", warmup=0, factor=0.5, patience=2))
    for score, share in [(1.0, 1), (2.0, 1), (2.0, 1), (1.5, 0.5), (1.5, 0.5), (1.5, 0.25), (3.0, 0.25)]:
        schedule.hear(score, higher_is_better=True)
        assert schedule.share(7) == share
    again = Schedule(schedule.settings)
    again.restore(schedule.state())
    again.hear(2.5, higher_is_better=True)
    again.hear(2.5, higher_is_better=True)
    assert again.share(7) == 0.125
