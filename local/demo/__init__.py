"""The main job, shown: 500 mails, 60 faxes, SMS, pushes, webhooks and the awkward ones, what came back about
them, and where all of them stand in the end; on a stage of the demo's own."""
