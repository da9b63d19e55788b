"""The operator's command line."""

from mailroom_stacks.own_channels import announce

announce()
