"""The layers' hot loops in C++, built at first use; the torch forms beside them give the same numbers."""
