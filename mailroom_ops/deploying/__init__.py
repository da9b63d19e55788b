"""Commands that deploy from the folder of cdk.json: synth, diff, deploy, destroy, policy; and `rehearse`."""
