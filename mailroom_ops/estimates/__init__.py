"""What `plan` and `cost` reckon with: the lanes of a stage, the time of its senders, and prices."""
