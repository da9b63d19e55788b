"""A file of messages, of any size, into the mailbox: `mailroom import`.

Lines are read in order and put some at a time; what is kept beside the file says up to where all of them are
in the mailbox. Each put is conditional on an id that follows from the file, so a line that is put again,
after a crash or without that note, is the same message and not a second one.
"""
