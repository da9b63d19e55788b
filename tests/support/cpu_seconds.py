"""CPU time of a test run."""

import resource


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its child processes that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)
