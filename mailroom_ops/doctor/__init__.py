"""The command `doctor`: checks whether a stage can send, and whether somebody is alerted if it cannot."""
