"""Joining, heartbeats, leaving, and the rebalances that follow; nothing here waits or does I/O."""
