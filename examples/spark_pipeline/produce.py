"""Fill the pipeline's topics with the Python client.

python examples/spark_pipeline/produce.py [--flights N] [--bootstrap HOST:PORT,...]
"""

import argparse
import os
import sys

from barnabas.errors import BarnabasError, TopicAlreadyExistsError
from barnabas.sync import Admin, Producer
from flights import events, load_airlines, load_flights

FLIGHTS, AIRLINES, DELAYS = "flights", "airlines", "delays"
PARTITIONS = 3


def create_topics(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        replicas = min(3, len(admin.describe_cluster().brokers))
        safe = {"min.insync.replicas": str(min(2, replicas))}
        admin.create_topic(FLIGHTS, PARTITIONS, replicas, configs=safe)
        # The newest record of each key is kept: a table of airlines.
        admin.create_topic(AIRLINES, 1, replicas, configs=safe | {"cleanup.policy": "compact"})
        admin.create_topic(DELAYS, PARTITIONS, replicas, configs=safe)


def fill(bootstrap: str, count: int | None = None) -> int:
    """Create the topics and send everything with acks=all; returns the number of flights."""
    create_topics(bootstrap)
    flights = load_flights(count)
    with Producer(bootstrap, acks="all", linger_ms=5) as producer:
        for carrier, name in load_airlines().items():
            producer.send(AIRLINES, name.upper().encode(), key=carrier.encode())
            producer.send(AIRLINES, name.encode(), key=carrier.encode())  # replaces the first
        for key, value in events(flights):
            producer.send(FLIGHTS, value, key=key)
    return len(flights)  # leaving `with` has raised what could not be delivered


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flights", type=int, help="how many (default: all 336,776)")
    parser.add_argument(
        "--bootstrap", default=os.environ.get("BARNABAS_BOOTSTRAP", "localhost:9092")
    )
    options = parser.parse_args()
    try:
        print(f"{fill(options.bootstrap, options.flights):,} flights are in the topic {FLIGHTS}")
    except TopicAlreadyExistsError as error:
        print(f"{error}; delete it first: barnabas topic delete TOPIC", file=sys.stderr)
        return 1
    except BarnabasError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
