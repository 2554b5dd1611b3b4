"""Complete prompts with a language model: one interface, two engines, in this process
or in worker processes.

    writer = engine_class("transformers")(loaded, batch_size=8)
    completions = writer.complete([Request("key", input_ids)], Sampling(512))

The engine NAME is the class `Engine`, a subclass of `Writer`, in the module
NAME_engine. Its `load` prepares a model that was loaded without weights, its `_accept`
refuses settings of ARM that it cannot run, and its `_stream` generates.

    engine_interface     requests, completions, and the base class of engines:
                         `Writer`, `engine_class`
    stop_tokens          the tokens that end an answer
    running_answer       an answer while it is generated: what the model reads next,
                         when it ends or is cut off, and whether a box is elicited
    transformers_engine  continuous batching of a transformers model, on any device,
                         with ARM
    key_value_caches     the caches of continuous batching, and `prefill`: the forward
                         pass of prompts, also for log-likelihoods
    log_likelihoods      `log_likelihood` of a text after a prompt, and of a batch
    vllm_engine          the same interface to vLLM, without ARM
    workers              either engine in many processes, on this machine or a cluster
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "engine_interface": ["Request", "Sampling", "engine_class"],
        "log_likelihoods": ["log_likelihood"],
    },
)
