"""The parts that the stacks are made of, each right once, for all."""
