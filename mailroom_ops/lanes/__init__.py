"""`lane`: the lanes of a stage, listed, paused and resumed."""
