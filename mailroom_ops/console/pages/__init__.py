"""The console's pages: a file each, and none of them reads or writes but by the functions of the commands."""
