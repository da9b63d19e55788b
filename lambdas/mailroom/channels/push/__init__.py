"""Push notifications, by Amazon SNS."""
