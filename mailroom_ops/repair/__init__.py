"""The commands `repair`, `resend`, `dead-letters` and `restore`, and the requeuing that they share."""
