"""Load, disturb, judge: puts messages on a local stage, lets things happen to it meanwhile, and judges by the
simulated providers what became of each. The demo and the chaos runs are two configurations."""
