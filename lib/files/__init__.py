"""How files are read and written, whatever their folder is.

whole   files that are read and replaced whole, in one line what is wrong with one
        that comes from outside, and the keys under which results are kept
store   rows that are kept one by one while a run goes on: a file that grows, so
        that a run can be stopped anywhere and resumed
"""
