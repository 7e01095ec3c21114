"""Generated from `proto/barnabas/`; never edited by hand."""
