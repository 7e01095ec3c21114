"""Mistakes, one a module; see `sitecustomize`."""
