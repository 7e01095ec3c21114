"""Transactions as an administrator sees them: those of the coordinators, and those of leaders."""
