"""The command `console`: shows a stage in the browser, for people who do not work in a terminal. It listens
on the loopback address only.

`console.py` has the command, `server.py` the table of pages, `guard.py` the access control, and `site.py` the
requests and answers of pages. Pages read and write with the functions of the commands only.
"""
