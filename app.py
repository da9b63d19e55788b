"""The app: settings in, stacks out. The CDK CLI runs it, or `mailroom synth` does."""

from mailroom_stacks.app.main import main

main()
