"""Reading and writing files.

whole   files that are read and replaced as a whole, with errors in one line, and the
        keys under which results are stored
store   rows that are stored one by one during a run, so that it can be stopped
        anywhere and resumed
"""
