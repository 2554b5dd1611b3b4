"""What a profile will fetch, need and compute on this machine, before anything runs.

machine           free memory and disk, and the device
speed             how fast the device is: its own last runs, else ten seconds of trying
weights           per model: gigabytes to fetch and those here, and why it cannot be had
task              prompts, tokens and operations of one model for one purpose
tasks             those of a profile: `measuring_tasks`, `answer_tasks`, `score_tasks`
tokens            how many tokens texts have, from their characters
cost              what one task takes on this machine: seconds and memory
decidable_claims  which claims of the paper a profile can decide
units             seconds and bytes as a person says them
planning          all of it: `make_plan`, and what is refused at once
quicker           what would make a run shorter
printout          a plan as it is printed
fetching          weights and problems onto this disk, so that a run needs no network

plan = make_plan(load_profile("laptop"))
print(printout.as_text(plan))
"""
