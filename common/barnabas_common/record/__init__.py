"""Records and record batches: Kafka's record format v2 and its four codecs."""
