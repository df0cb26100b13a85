"""Figures drawn by other processes."""

import os
import time
from contextlib import suppress

import pytest

from analysis.figures import painters
from analysis.figures.painters import Painters


def paint(data):
    """What a painter does: here, nothing but say who it is."""
    if data == "fault":
        raise ValueError("cannot draw this")
    print("noise on standard output")  # noqa: T201 - must not reach the pipe
    return f"{data} by {os.getpid()}", b"png"


def by_hand(data):
    """Slow enough to be killed in the middle."""
    time.sleep(0.2)
    return f"{data} by {os.getpid()}", b""


def test_many_figures_are_drawn_elsewhere_and_come_back_in_order():
    """Each has its own data, none is drawn by us, and no process is left."""
    with Painters(paint, expected=100) as many:
        drawn = [many.draw(i).result() for i in range(10)]
        assert [text.split()[0] for text, _ in drawn] == [str(i) for i in range(10)]
        assert {image for _, image in drawn} == {b"png"}
        assert f"by {os.getpid()}" not in {text.split(" ", 1)[1] for text, _ in drawn}
        processes = list(many._all)
    assert all(process.is_gone for process in processes)


def test_few_figures_are_drawn_here():
    """No process is started for them."""
    with Painters(paint, expected=3) as few:
        assert few.draw("x").result() == (f"x by {os.getpid()}", b"png")
        assert few._all == []


def test_a_fault_of_a_drawing_is_raised_to_who_asked():
    """It is the drawing's own error, and the process goes on."""
    with Painters(paint, expected=100) as many:
        with pytest.raises(ValueError, match="cannot draw this"):
            many.draw("fault").result()
        assert many.draw("next").result()[0].startswith("next by")


def test_figures_of_a_killed_painter_are_drawn_here(monkeypatch):
    """Kill -9 of every process in the middle loses no figure."""
    monkeypatch.setattr(painters, "MOST", 2)
    with Painters(by_hand, expected=100) as many:
        coming = [many.draw(i) for i in range(8)]
        coming[0].result()
        for process in many._all:
            process.kill()
        drawn = [one.result()[0] for one in coming]
    assert [text.split()[0] for text in drawn] == [str(i) for i in range(8)]
    assert drawn[-1].endswith(f"by {os.getpid()}")


def test_an_interrupted_report_waits_for_nobody():
    """What is left is not drawn, and the processes end."""
    left = []
    with suppress(KeyboardInterrupt), Painters(by_hand, expected=100) as many:
        left += [many.draw(i) for i in range(50)]
        processes = list(many._all)
        raise KeyboardInterrupt
    assert all(process.is_gone for process in processes)
    assert any(one.cancelled() for one in left)
