"""Whether a run shows what its profile must show, as JSON and as one page."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from barnabas_tools.chaos.report.report import Report
from barnabas_tools.chaos.run.nemesis import Tally
from barnabas_tools.chaos.run.profiles import Profile


@dataclass
class Verdict:
    """`trouble`: why the run could not go on, such as a cluster that did not become whole."""

    profile: str
    seed: int
    minutes: float
    tally: Tally
    reports: Mapping[str, Report] = field(default_factory=dict)
    trouble: str = ""

    def good(self, profile: Profile) -> bool:
        """Whether every promise was kept; of a control, whether what it must show was found."""
        if self.trouble or self.tally.counts.total() == 0 or not self.reports:
            return False
        judged = [report.judgement for report in self.reports.values()]
        shown = any(each.findings.counts[anomaly] for each in judged for anomaly in profile.shows)
        return all(each.good for each in judged) and (shown or not profile.shows)

    def lines(self, profile: Profile) -> list[str]:
        """What to print at the end."""
        counts = self.tally.counts
        lines = [
            f"{counts.total()} faults of {len(counts)} kinds took effect, "
            f"{len(self.tally.not_in_effect)} did not; in sync again after "
            f"{self.tally.whole_again:.1f} s at most"
        ]
        for name, report in self.reports.items():
            judged = report.judgement
            found = {str(anomaly): count for anomaly, count in judged.findings.counts.items()}
            lines.append(
                f"{name}: {judged.acknowledged} acknowledged, {judged.read} read, "
                f"found {found or 'nothing'}, broken {sorted(judged.broken) or 'nothing'}"
            )
            lines += [str(each) for each in judged.examples()[:5]]
            if judged.unread:
                lines.append(f"{name}: not read to the end: {', '.join(judged.unread)}")
        if self.trouble:
            lines.append(f"trouble: {self.trouble}")
        lines.append(f"{self.profile}: {self.outcome(profile)}")
        return lines

    def outcome(self, profile: Profile) -> str:
        if self.good(profile):
            return "the control shows what it must" if profile.shows else "the promise was kept"
        if self.trouble or self.tally.counts.total() == 0 or not self.reports:
            return "the run proves nothing"
        if any(report.judgement.broken for report in self.reports.values()):
            return "the promise was broken"
        if any(report.judgement.unread for report in self.reports.values()):
            return "not everything could be read"
        return "the control shows nothing" if profile.shows else "the run proves nothing"

    def write(self, folder: Path, profile: Profile) -> None:
        """Write `report.json` and `report.html`, and those of each workload into its folder."""
        workloads = {}
        for name, report in self.reports.items():
            report.write(folder / name)
            content = report.as_json()
            kept = ("good", "acknowledged", "read", "unread", "anomalies", "sends", "errors")
            workloads[name] = {key: content[key] for key in kept}
        content = {
            "profile": self.profile,
            "seed": self.seed,
            "minutes": self.minutes,
            "good": self.good(profile),
            "outcome": self.outcome(profile),
            "trouble": self.trouble,
            "faults": vars(self.tally),
            "workloads": workloads,
        }
        (folder / "report.json").write_text(json.dumps(content, indent=1) + "\n")
        (folder / "report.html").write_text(self._page(profile))

    def _page(self, profile: Profile) -> str:
        links = "".join(
            f'<li><a href="{escape(name)}/report.html">{escape(name)}</a></li>'
            for name in self.reports
        )
        text = "\n".join(self.lines(profile))
        title = f"{self.profile}, seed {self.seed}, {self.minutes:g} minutes"
        return (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f"</head><body><h1>{title}</h1><p>{escape(self.outcome(profile))}</p>"
            f"<ul>{links}</ul><pre>{escape(text)}</pre></body></html>\n"
        )
