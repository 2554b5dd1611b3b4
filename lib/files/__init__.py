"""Read and write files, with errors in one line.

text_and_yaml  text and YAML files
jsonl          JSONL files, which have one JSON value per line
atomic         complete files, which are replaced atomically
row_store      rows that are stored one by one during a run, so that it can be stopped
               at any time and resumed
locks          locks of files, so that two runs do not write the same results
run_json       the settings under which a folder's rows were made, and the keys of rows
"""
