"""Prompts in, completions out: one small interface, two engines, here or in workers.

    writer = make_engine("transformers", loaded, batch_size=8, options={})
    completions = writer.complete([Request("key", input_ids)], Sampling(512))

`requests` has what goes in and comes out, `stops` what ends an answer, `writer` what
every engine has in common, and `engines` finds an engine by its name. An engine is a
module with a `Writer` named `Engine(loaded, batch_size, **options)`. Its `load` turns a
model that was loaded without weights into one that the engine can run, its `_accept`
refuses what it cannot run, and its `_stream` writes.

    transformers  the project's own continuous batches, on a CPU or a GPU, also under
                  ARM; the cache of the rows is in `slots`, prompts go in by `prefill`,
                  tokens are chosen in `next_token`
    vllm          the same interface over vLLM, without ARM
    workers       either of them in many processes, on this machine or a cluster
"""
