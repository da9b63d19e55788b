"""The main job, shown: 500 mails, 60 faxes, webhooks and the awkward ones, on a stage of the demo's own."""
