"""`suppressions` and `preferences`: what recipients wish, and what their providers said of them."""
