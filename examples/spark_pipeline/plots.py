"""Two plots of what the pipeline has published, as one SVG file.

python examples/spark_pipeline/plots.py FILE.svg [--bootstrap HOST:PORT,...]
"""

import argparse
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from barnabas.sync import Consumer

WIDTH, HEIGHT, LEFT, GAP = 860, 210, 190, 60
BLUE, GREY = "#2a6f97", "#777"
STYLE = "text { font: 12px sans-serif } .title { font-weight: bold; font-size: 14px }"


def published(bootstrap: str) -> list[dict[str, Any]]:
    with Consumer(
        "delays",
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        ends = consumer.end_offsets(consumer.assignment())
        found = []
        while any(consumer.position(tp) < end for tp, end in ends.items()):
            found += [json.loads(r.value or b"null") for r in consumer.poll(timeout_ms=500)]
    return found


def means(rows: list[dict[str, Any]], by: str) -> dict[str, float]:
    """Minutes of delay for each flight that departed, by day or airline."""
    minutes: dict[str, int] = defaultdict(int)
    departed: dict[str, int] = defaultdict(int)
    for row in rows:
        minutes[row[by]] += row["minutes"]
        departed[row[by]] += row["departed"]
    return {name: minutes[name] / count for name, count in sorted(departed.items()) if count}


def text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'


def line_chart(days: dict[str, float], top: float) -> list[str]:
    low, high = min(0.0, *days.values()), max(days.values())
    step = (WIDTH - LEFT - 50) / max(1, len(days) - 1)

    def y(value: float) -> float:
        return top + HEIGHT - 30 - (value - low) / (high - low) * (HEIGHT - 60)

    points = " ".join(f"{LEFT + i * step:.1f},{y(v):.1f}" for i, v in enumerate(days.values()))
    names = list(days)
    shown = range(0, len(names), max(1, len(names) // 6))
    return [
        text(20, top + 14, "Mean departure delay by day (UTC), minutes", 'class="title"'),
        *(text(LEFT - 10, y(v) + 4, f"{v:.0f}", 'text-anchor="end"') for v in (0, high / 2, high)),
        f'<path d="M{LEFT} {y(0):.1f}H{WIDTH - 50}" stroke="{GREY}" stroke-width="0.5"/>',
        f'<polyline points="{points}" fill="none" stroke="{BLUE}" stroke-width="1.5"/>',
        *(text(LEFT + i * step, top + HEIGHT - 8, names[i], 'text-anchor="middle"') for i in shown),
    ]


def bar_chart(airlines: dict[str, float], top: float) -> list[str]:
    """One bar for each airline, the latest first; early ones begin left of zero."""
    low = min(0.0, *airlines.values())
    unit = (WIDTH - LEFT - 60) / (max(airlines.values()) - low)
    zero = LEFT - low * unit
    drawn = [text(20, top + 14, "Mean departure delay by airline, minutes", 'class="title"')]
    for i, (name, mean) in enumerate(sorted(airlines.items(), key=lambda item: -item[1])):
        y = top + 28 + i * 20
        x, width = min(zero, zero + mean * unit), abs(mean) * unit
        drawn += [
            text(LEFT - 10, y + 12, name, 'text-anchor="end"'),
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="15" fill="{BLUE}"/>',
            text(x + width + 5, y + 12, f"{mean:.1f}"),
        ]
    return drawn


def picture(rows: list[dict[str, Any]]) -> str:
    airlines = means(rows, "airline")
    height = HEIGHT + GAP + 40 + 20 * len(airlines)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">',
        f"<style>{STYLE}</style>",
        '<rect width="100%" height="100%" fill="white"/>',
        *line_chart(means(rows, "day"), 10),
        *bar_chart(airlines, HEIGHT + GAP),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--bootstrap", default=os.environ.get("BARNABAS_BOOTSTRAP", "localhost:9092")
    )
    options = parser.parse_args()
    rows = published(options.bootstrap)
    options.file.write_text(picture(rows))
    print(f"{options.file}: {len(rows):,} rows")


if __name__ == "__main__":
    main()
