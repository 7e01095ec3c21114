"""Records and the batches they travel in: Kafka's record format v2 and its four codecs."""
