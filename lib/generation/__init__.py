"""Prompts in, completions out: one small interface, two engines, here or in workers.

    writer = engine_class("transformers")(loaded, batch_size=8)
    completions = writer.complete([Request("key", input_ids)], Sampling(512))

An engine is a module with a `Writer` named `Engine`. Its `load` turns a model that was
loaded without weights into one that the engine can run, its `_accept` refuses what it
cannot run, and its `_stream` writes.

    writer        what every engine has in common, how a row writes its answer, and an
                  engine by its name
    transformers  the project's own continuous batches, on any device, also under ARM
    cache         the cache of the rows that are answered, and how prompts get there
    vllm          the same interface over vLLM, without ARM
    workers       either of them in many processes, on this machine or a cluster
"""
