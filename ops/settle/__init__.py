"""`settle`: an operator says how a message ended that nobody else can tell of."""
