"""Read and write files, with errors in one line.

text_files  text, YAML and JSONL files, which have one JSON value per line
atomic      complete files, which are replaced atomically
row_store   rows that are stored one by one during a run, so that it can be stopped at
            any time and resumed; the settings under which they were made, their keys,
            and locks, so that two runs do not write the same results
"""
