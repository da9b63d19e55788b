"""`console`: a stage in a browser, for those who do not live in a terminal. Loopback alone.

`console.py` opens it, `server.py` has the table of pages, `guard.py` says who gets in, and `site.py` is what
a page is given and what it answers. A page reads and writes by the functions of the commands.
"""
