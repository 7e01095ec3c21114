"""A report as one HTML file that needs nothing else."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from barnabas_tools.chaos.report.timeline import timeline

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1100px;
  padding: 0 1rem; color: #1c2430; background: #fff; }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse } td, th { padding: .2rem .9rem .2rem 0; text-align: left;
  vertical-align: top; border-bottom: 1px solid #e3e6ea; font-variant-numeric: tabular-nums }
.good { color: #1b7a3d } .broken { color: #b3261e } code { font-size: .85em }
svg { width: 100%; height: auto; font: 11px system-ui, sans-serif }
details { margin: .3rem 0 }
"""


def page(content: Mapping[str, Any]) -> str:
    """Render the content of a report, as `Report.as_json` has it."""
    good = content["good"]
    outcome = "The promise was kept" if good else "The promise was broken"
    if not good and not any(not found["permitted"] for found in content["anomalies"].values()):
        outcome = "The run proves nothing"
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(content["title"])}</title><style>{_STYLE}</style></head><body>
<h1>{escape(content["title"])}</h1>
<p class="{"good" if good else "broken"}"><strong>{outcome}.</strong> {_summary(content)}</p>
<h2>Time line</h2>{timeline(content)}
<h2>Anomalies</h2>{_anomalies(content["anomalies"])}
<h2>Longest gap without an acknowledgement</h2>{_gaps(content["longest_gap"])}
<h2>Consumers</h2>{_consumers(content)}
<h2>Faults</h2>{_faults(content["faults"])}
<h2>Errors that clients were told</h2>{_table(("error", "count"), content["errors"].items())}
</body></html>
"""


def _summary(content: Mapping[str, Any]) -> str:
    sends = content["sends"]
    text = (
        f"{content['acknowledged']:,} records acknowledged, {content['read']:,} read, "
        f"{sends.get('info', 0):,} of unknown outcome, {sends.get('fail', 0):,} refused, "
        f"{len(content['faults'])} faults in {content['seconds']:.0f} s."
    )
    if content["unread"]:
        text += f" Not read to the end: {escape(', '.join(content['unread']))}."
    return text


def _anomalies(anomalies: Mapping[str, Any]) -> str:
    if not anomalies:
        return "<p>None.</p>"
    parts = []
    for name, found in anomalies.items():
        kind = "permitted by the configuration" if found["permitted"] else "ruled out"
        lines = "".join(
            f"<li>{escape(each['what'])} <code>{escape(', '.join(each['operations']))}</code></li>"
            for each in found["examples"]
        )
        style = "" if found["permitted"] else ' class="broken"'
        parts.append(
            f"<details><summary{style}>{escape(name)}: {found['count']:,} ({kind})</summary>"
            f"<ul>{lines}</ul></details>"
        )
    return "".join(parts)


def _gaps(gaps: Mapping[str, Any]) -> str:
    longest = sorted(gaps.items(), key=lambda each: -each[1]["seconds"])
    rows = ((name, f"{gap['seconds']:.2f}", f"{gap['begin']:.1f}") for name, gap in longest)
    return _table(("partition", "seconds", "from second"), rows)


def _consumers(content: Mapping[str, Any]) -> str:
    lags = _table(
        ("consumer", "worst lag, seconds"),
        ((name, f"{lag:.2f}") for name, lag in content["lag"].items()),
    )
    groups = _table(
        ("group", "records", "deliveries"),
        (
            (group, f"{content['distinct'].get(group, 0):,}", f"{count:,}")
            for group, count in content["deliveries"].items()
        ),
    )
    return lags + groups


def _faults(faults: Iterable[Mapping[str, Any]]) -> str:
    rows = (
        (
            f"{fault['begin']:.1f}",
            "not healed" if fault["end"] is None else f"{fault['end']:.1f}",
            fault["fault"],
            fault["target"],
            fault["error"],
        )
        for fault in faults
    )
    return _table(("from second", "to second", "fault", "target", "error"), rows)


def _table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    if not body:
        return "<p>None.</p>"
    head = "".join(f"<th>{escape(head)}</th>" for head in heads)
    return f"<table><tr>{head}</tr>{body}</table>"
