"""The CDK app, which creates the stacks from the settings. The CDK's command line or `mailroom synth` runs
it."""

from mailroom_stacks.app.main import main

main()
