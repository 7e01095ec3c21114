"""The command line: `barnabas`. Modules import heavy packages only when a command runs."""
