"""What a profile will fetch, need and compute on this machine, before anything runs.

machine     free memory and disk, and the device
speed       how fast the device is: its own last runs, else ten seconds of trying
weights     per model: gigabytes to fetch and already here, and why it cannot be had
steps       per model and step: prompts, tokens and floating-point operations
outcome     which claims of the paper a profile can decide
planning    all of it: `make_plan`, and what is refused at once
words       a plan as text
fetching    weights and problems onto this disk, so that a run needs no network

plan = make_plan(load_profile("laptop"))
print(words.as_text(plan))
"""
