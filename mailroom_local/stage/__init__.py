"""The local stage: an emulator of AWS, the stacks deployed to it, and further processes."""
