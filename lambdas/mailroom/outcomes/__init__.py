"""What follows from a status: callbacks, a fax's next attempt, the count of failures."""
