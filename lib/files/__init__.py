"""Read and write files, with errors in one line.

atomic  complete files, which are replaced atomically, and the keys under which results
        are stored
store   rows that are stored one by one during a run, so that it can be stopped at any
        time and resumed
"""
