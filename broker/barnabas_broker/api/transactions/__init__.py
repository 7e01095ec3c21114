"""What leaders are asked about transactions and producers."""
