"""Dead letters: what each is about, why it failed, and what to do about it."""
