"""Fuzzing: five targets that take any bytes and find fault by raising; see
:mod:`tests.support.fuzz.__main__`.
"""
