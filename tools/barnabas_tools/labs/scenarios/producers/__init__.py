"""What a producer may rely on."""
