"""Who wants nothing more: suppressions, opt-outs and the links that opt out."""
