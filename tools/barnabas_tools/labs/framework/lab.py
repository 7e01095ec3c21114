"""The definition of a lab: a question, a scenario on a real cluster, and its settings."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from barnabas_tools.labs.framework.stage import LabCluster


@dataclass(frozen=True)
class Prediction:
    """The question before the scenario runs; `answer` is an index of `choices`."""

    question: str
    choices: tuple[str, ...]
    answer: int
    because: str


@dataclass(frozen=True)
class Lab:
    """One lab. `page` is the guide's page about its mechanism, without `.md`.

    The `title` is shown before the question and must not answer it. `config` holds the settings of
    the cluster's brokers, `application` those of the programs that the scenario runs. `switch`
    holds the settings, of either, that restore the fault which the lab is about, if any do: with
    them the lab's checks must fail. With `pause_points` the stage can hold brokers at pause points.
    """

    name: str
    title: str
    page: str
    prediction: Prediction
    scenario: Callable[[LabCluster], Awaitable[None]]
    config: Mapping[str, str] = field(default_factory=dict)
    application: Mapping[str, str] = field(default_factory=dict)
    switch: Mapping[str, str] = field(default_factory=dict)
    brokers: int = 3
    pause_points: bool = False
