"""The report of a run: the same content as JSON and as one HTML file."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from barnabas_common.history.checker import Judgement, check
from barnabas_common.history.operations import Operation
from barnabas_common.history.promise import Promise

from barnabas_tools.chaos.report.figures import Figures, Watch
from barnabas_tools.chaos.report.page import page


@dataclass(frozen=True)
class Report:
    """A judged history and its figures. `title` names the run, with its seed."""

    title: str
    judgement: Judgement
    figures: Figures

    def as_json(self) -> dict[str, Any]:
        judged, figures = self.judgement, self.figures
        permitted = judged.promise.permitted()
        anomalies = {
            str(anomaly): {
                "count": count,
                "permitted": anomaly in permitted,
                "examples": [
                    {"what": found.what, "operations": list(found.operations)}
                    for found in judged.findings.examples[anomaly]
                ],
            }
            for anomaly, count in sorted(judged.findings.counts.items())
        }
        return {
            "title": self.title,
            "good": judged.good,
            "promise": asdict(judged.promise),
            "acknowledged": judged.acknowledged,
            "read": judged.read,
            "unread": judged.unread,
            "anomalies": anomalies,
            **vars(figures),
            "faults": [asdict(span) for span in figures.faults],
            "states": {name: [asdict(each) for each in of] for name, of in figures.states.items()},
            "longest_gap": {name: asdict(gap) for name, gap in figures.longest_gap.items()},
        }

    def write(self, folder: Path) -> None:
        """Write `report.json` and `report.html`."""
        content = self.as_json()
        (folder / "report.json").write_text(json.dumps(content, indent=1) + "\n")
        (folder / "report.html").write_text(page(content))


def report(title: str, operations: Iterable[Operation], promise: Promise) -> Report:
    """Judge a history and collect its figures, in one pass."""
    watch = Watch()
    judged = check(watch.passing(operations), promise)
    return Report(title, judged, watch.figures)
