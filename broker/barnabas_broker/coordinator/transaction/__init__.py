"""The transaction coordinator, whose state is in `__transaction_state`."""
