"""The commands about people: `suppressions`, `preferences` and `erase`."""
