"""Mail, by Amazon SES."""
