"""HTTP in and out: addresses that may be called, one request, what an answer proves, what arrived."""
