"""The command line: `barnabas`. Every module here imports what is heavy only when it runs."""
