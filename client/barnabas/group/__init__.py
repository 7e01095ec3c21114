"""Consumer groups, the client's side."""
