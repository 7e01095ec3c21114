"""Mistakes, one per module; see `sitecustomize`."""
