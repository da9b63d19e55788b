"""Parts that several commands share: the screen, options, times, and a deployed stage."""
