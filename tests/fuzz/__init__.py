"""Fuzzing: four targets that take any bytes and find fault by raising; see :mod:`tests.fuzz.__main__`."""
