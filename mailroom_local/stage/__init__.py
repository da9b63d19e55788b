"""The local stage: an emulator of AWS, the stacks deployed on it, and the processes beside it."""
