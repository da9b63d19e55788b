"""A file of messages, of any size, into the mailbox: `mailroom import`.

Lines are read in order and put some at a time. A small file beside the source says up to where all of them
are in the mailbox. Each put is conditional on an id that follows from the source. So a line that is put
again, after a crash or without the small file, is the same message and not a second one.
"""
