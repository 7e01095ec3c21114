"""Work, then commit: a crash in between repeats work, and leaves none out."""

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster
from barnabas_tools.labs.framework.worker import AFTER_WORK, BEFORE_WORK
from barnabas_tools.labs.scenarios.groups.delivery import CHOICES, COMMIT, CONFIG, deliver


async def scenario(stage: LabCluster) -> None:
    never, twice = await deliver(stage)
    stage.check("every record is worked on", not never, f"never: {never}")
    stage.check(
        "those between the last commit and the crash are worked on twice",
        twice == [20, 21, 22, 23, 24],
        twice,
    )


LAB = Lab(
    name="at-least-once",
    title="What becomes of the work when a consumer is killed that commits after it",
    page="groups",
    prediction=Prediction(
        "A worker reads ten records, works on them, and commits that they are read. It is killed\n"
        "at the sixth of the ten records 20 to 29, and another worker takes over. Which of them\n"
        "are worked on twice, and which never?",
        CHOICES,
        1,
        "The group knows only what was committed: 20. The second worker begins there, so the work\n"
        "since the last commit is done again. That is at-least-once: no work is left out, so work\n"
        "that is done twice must do no harm. `--switch` commits before the work.",
    ),
    scenario=scenario,
    config=CONFIG,
    application={COMMIT: AFTER_WORK},
    switch={COMMIT: BEFORE_WORK},
)
