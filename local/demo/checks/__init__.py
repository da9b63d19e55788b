"""What became of the messages against what should have: pure functions, also used by the pipeline's tests."""
