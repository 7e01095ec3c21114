"""Commit, then work: a crash in between leaves work out, and repeats none."""

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster
from barnabas_tools.labs.framework.worker import AFTER_WORK, BEFORE_WORK
from barnabas_tools.labs.scenarios.groups.delivery import CHOICES, COMMIT, CONFIG, deliver


async def scenario(stage: LabCluster) -> None:
    never, twice = await deliver(stage)
    stage.check("no record is worked on twice", not twice, f"twice: {twice}")
    stage.check(
        "those between the crash and the commit are never worked on",
        never == [25, 26, 27, 28, 29],
        never,
    )


LAB = Lab(
    name="at-most-once",
    title="What becomes of the work when a consumer is killed that commits before it",
    page="groups",
    prediction=Prediction(
        "A worker reads ten records, commits that they are read, and works on them. It is killed\n"
        "at the sixth of the ten records 20 to 29, and another worker takes over. Which of them\n"
        "are worked on twice, and which never?",
        CHOICES,
        2,
        "The group knows only what was committed: 30. The second worker begins there, so the work\n"
        "that was committed and not done is left out. That is at-most-once: it suits work that\n"
        "must not be repeated and may be lost. `--switch` commits after the work.",
    ),
    scenario=scenario,
    config=CONFIG,
    application={COMMIT: BEFORE_WORK},
    switch={COMMIT: AFTER_WORK},
)
