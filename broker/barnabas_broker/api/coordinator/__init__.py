"""The requests of service Coordinator."""
