"""The offsets of one group: those that count, those that wait, those that have expired."""
