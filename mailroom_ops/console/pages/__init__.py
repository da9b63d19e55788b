"""The console's pages, one in each file. They read and write with the functions of the commands only."""
