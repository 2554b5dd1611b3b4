"""References for the attention code: full matrices of transformers' eager attention."""

import contextlib

import torch


@contextlib.contextmanager
def hidden_by_hand(model, cut, layers):
    """Use eager attention within the block, masking in these layers (counted from 1)
    the query-key pairs that are true in `cut` (T, T).
    """
    decoder = model.get_decoder()
    lowest = torch.finfo(torch.float32).min

    def change(module, args, options):
        if module.layer_idx + 1 in layers:
            mask = options["attention_mask"]
            options["attention_mask"] = mask.masked_fill(cut, lowest)
        return args, options

    before = decoder.config._attn_implementation
    decoder.set_attn_implementation("eager")
    with contextlib.ExitStack() as hooks:
        hooks.callback(decoder.set_attn_implementation, before)
        for module in set(decoder.modules()) - set(decoder.layers):
            if hasattr(module, "layer_idx") and "ttention" in type(module).__name__:
                hook = module.register_forward_pre_hook(change, with_kwargs=True)
                hooks.enter_context(hook)
        yield


def matrices(model, ids):
    """Return the attention of one prompt (T,) in every layer, (L, H, T, T)."""
    decoder = model.get_decoder()
    options = {
        "attention_mask": torch.ones(1, len(ids), dtype=torch.long),
        "output_attentions": True,
        "use_cache": False,
    }
    with hidden_by_hand(model, None, ()), torch.inference_mode():
        attentions = decoder(ids[None], **options).attentions
    assert len(attentions) == len(decoder.layers)
    return torch.stack([attention[0, ..., : len(ids)] for attention in attentions])


def received(attention):
    """Return the mean attention that each token receives from the later ones (..., T),
    by its definition, of matrices (..., T, T).
    """
    below = torch.tril(torch.ones(attention.shape[-2:]), -1)
    return (attention * below).sum(-2) / below.sum(-2)


def outputs_of(model, ids, *names):
    """Return the outputs of these modules of each layer for one prompt (T,), by (layer,
    name) and without the batch dimension.
    """
    decoder = model.get_decoder()
    outputs = {}

    def keeping(key):
        def keep(module, inputs, output):
            outputs[key] = output[0]

        return keep

    with contextlib.ExitStack() as hooks, torch.inference_mode():
        for number, layer in enumerate(decoder.layers, 1):
            for name in names:
                module = layer.get_submodule(name)
                hook = module.register_forward_hook(keeping((number, name)))
                hooks.enter_context(hook)
        decoder(ids[None], use_cache=False)
    return outputs


def values_of(model, ids):
    """Return the value vectors of each query head for one prompt (T,): (L, H, T, D)."""
    width = model.config.head_dim
    outputs = outputs_of(model, ids, "self_attn.v_proj").values()
    of_key_heads = torch.stack([*outputs]).unflatten(-1, (-1, width)).transpose(1, 2)
    served = model.config.num_attention_heads // of_key_heads.shape[1]
    return of_key_heads.repeat_interleave(served, 1)
