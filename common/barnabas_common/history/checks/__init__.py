"""Which anomalies a history shows: one module for each family, plain functions on what was seen.

The classes are those of Jepsen's Kafka workload (`jepsen/tests/kafka.clj`), and those of groups.
"""
