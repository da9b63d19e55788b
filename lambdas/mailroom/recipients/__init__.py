"""Recipients who must not get a message: the suppression list, opt-outs from topics, and the links by which
recipients opt out."""
