"""The broker package's groups of the `barnabas` command: cluster, broker, log, zk."""
