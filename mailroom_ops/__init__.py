"""The command line `mailroom`, and the console in the browser."""

from mailroom_stacks.own_channels import announce

announce()
