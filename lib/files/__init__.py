"""Reading and writing files.

atomic  files that are read or replaced at once, with errors in one line, and the keys
        under which results are stored
store   rows that are stored one by one during a run, so that it can be stopped
        anywhere and resumed
"""
