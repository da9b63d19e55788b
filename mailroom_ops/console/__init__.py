"""`console`: a stage in a browser, for people who do not work in a terminal. On the loopback address only.

`console.py` has the command, `server.py` the table of pages, `guard.py` the access control, and `site.py` the
requests and answers of pages. Pages read and write with the functions of the commands only.
"""
