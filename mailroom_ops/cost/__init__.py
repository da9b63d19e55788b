"""`cost`: what a stage and its messages cost a month."""
