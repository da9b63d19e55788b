"""Mappings of FIFO queues, driven as AWS does: message groups in parallel, each in its order."""
