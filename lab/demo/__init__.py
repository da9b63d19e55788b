"""The demo: messages on all channels and a campaign, on a stage of its own, with a check of every outcome."""
