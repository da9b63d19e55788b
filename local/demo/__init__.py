"""The main job, shown: 500 mails and the awkward ones, on a stage that lives as long as the demo."""
