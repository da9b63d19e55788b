"""The commands `people`: who gets no messages and why, and changes of that; and erasure."""
