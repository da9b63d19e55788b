"""Recipients who must not get a message: suppressions, opt-outs, and the links for opting out."""
