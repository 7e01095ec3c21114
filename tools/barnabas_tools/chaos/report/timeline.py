"""The time line of a report as SVG: throughput, faults, and leader and ISR of each partition."""

from collections.abc import Mapping
from html import escape
from typing import Any

WIDTH = 1080
LEFT = 130
CHART = 90
ROW = 16
MOST_PARTITIONS = 24
_COLOURS = ("#3b6fb6", "#d98324", "#4f9d69", "#9b59a8", "#b5503c", "#7a7f36", "#2b8a9b")
_NO_LEADER = "#c9ccd1"


def timeline(content: Mapping[str, Any]) -> str:
    """Draw a report's content; a title on each mark says what it is."""
    seconds = max(content["seconds"], 1.0)
    parts = _throughput(content["acknowledged_by_second"], seconds)
    y = CHART + 30
    fault_rows = _fault_rows(content["faults"], seconds)
    for row in fault_rows:
        for fault in row:
            parts.append(_fault(fault, seconds, y))
        y += ROW
    if fault_rows:
        parts.append(_label("faults", CHART + 30 + 11))
    y += 8
    shown = sorted(content["states"].items())[:MOST_PARTITIONS]
    for partition, states in shown:
        parts.append(_label(partition, y + 11))
        parts += _leaders(states, seconds, y)
        y += ROW
    parts.append(_axis(seconds, y + 12))
    hidden = len(content["states"]) - len(shown)
    note = f"<p>{hidden} more partitions are in report.json.</p>" if hidden > 0 else ""
    return f'<svg viewBox="0 0 {WIDTH} {y + 20}" role="img">{"".join(parts)}</svg>{note}'


def _x(second: float, seconds: float) -> float:
    return LEFT + (WIDTH - LEFT - 10) * min(second, seconds) / seconds


def _label(text: str, y: float) -> str:
    return f'<text x="{LEFT - 8}" y="{y}" text-anchor="end">{escape(text)}</text>'


def _throughput(by_second: Mapping[int, int], seconds: float) -> list[str]:
    highest = max(by_second.values(), default=0) or 1
    points = []
    for second in range(int(seconds) + 1):
        height = CHART * by_second.get(second, 0) / highest
        points.append(f"{_x(second, seconds):.1f},{CHART + 10 - height:.1f}")
    base = CHART + 10
    area = f"{LEFT},{base} {' '.join(points)} {_x(seconds, seconds):.1f},{base}"
    return [
        f'<polygon points="{area}" fill="#3b6fb6" opacity=".55"/>',
        _label(f"{highest:,} acks/s", 20),
        _label("0", base),
    ]


def _fault_rows(faults: list[dict[str, Any]], seconds: float) -> list[list[dict[str, Any]]]:
    """Put faults that overlap into different rows."""
    rows: list[list[dict[str, Any]]] = []
    for fault in sorted(faults, key=lambda each: each["begin"]):
        for row in rows:
            if (row[-1]["end"] or seconds) <= fault["begin"]:
                row.append(fault)
                break
        else:
            rows.append([fault])
    return rows


def _fault(fault: Mapping[str, Any], seconds: float, y: float) -> str:
    begin = _x(fault["begin"], seconds)
    end = _x(seconds if fault["end"] is None else fault["end"], seconds)
    text = escape(f"{fault['fault']} {fault['target']} at {fault['begin']:.1f} s")
    size = f'x="{begin:.1f}" y="{y}" width="{max(end - begin, 2):.1f}" height="{ROW - 4}"'
    return f'<rect {size} fill="#b3261e" opacity=".75"><title>{text}</title></rect>'


def _leaders(states: list[dict[str, Any]], seconds: float, y: float) -> list[str]:
    parts = []
    ends = [state["at"] for state in states[1:]] + [seconds]
    full = max((len(state["in_sync_replicas"]) for state in states), default=1) or 1
    for state, end in zip(states, ends, strict=True):
        leader, isr = state["leader"], state["in_sync_replicas"]
        colour = _NO_LEADER if leader < 0 else _COLOURS[leader % len(_COLOURS)]
        begin = _x(state["at"], seconds)
        width = max(_x(end, seconds) - begin, 1)
        height = (ROW - 4) * max(len(isr), 1) / full
        text = escape(f"leader {leader}, ISR {isr}, from {state['at']:.1f} s")
        top = y + ROW - 4 - height
        size = f'x="{begin:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"'
        parts.append(f'<rect {size} fill="{colour}"><title>{text}</title></rect>')
    return parts


def _axis(seconds: float, y: float) -> str:
    step = max(1, round(seconds / 10))
    return "".join(
        f'<text x="{_x(second, seconds):.1f}" y="{y}" text-anchor="middle">{second} s</text>'
        for second in range(0, int(seconds) + 1, step)
    )
