"""Transactions as the producer sees them: states, requests, and what errors lead to."""
