"""`campaign`: campaigns listed, started, watched and stopped; a dry run of one."""
