"""A file of messages, of any size, into the mailbox: `mailroom import`.

Lines are read in order and put by the client, some at a time. Each put is conditional on an id that follows
from the source. So to run an import again is to resume it: what is there already is the same message.
"""
