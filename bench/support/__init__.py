"""What several benchmarks share: the machine, what is measured, and how it is shown."""
