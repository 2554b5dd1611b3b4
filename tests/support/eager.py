"""What the attention code is held against: whole matrices from transformers' own eager
attention.
"""

import contextlib

import torch


@contextlib.contextmanager
def hidden_by_hand(model, cut, layers):
    """Attend eagerly with a mask in which these layers, counted from 1, if any, lack
    what `cut` (T, T) says.
    """
    decoder = model.get_decoder()

    def change(module, args, given):
        if module.layer_idx + 1 in layers:
            given["attention_mask"] = given["attention_mask"].masked_fill(
                cut, torch.finfo(torch.float32).min
            )
        return args, given

    before = decoder.config._attn_implementation
    decoder.set_attn_implementation("eager")
    with contextlib.ExitStack() as hooks:
        hooks.callback(decoder.set_attn_implementation, before)
        for module in set(decoder.modules()) - set(decoder.layers):
            if hasattr(module, "layer_idx") and "ttention" in type(module).__name__:
                hooks.enter_context(
                    module.register_forward_pre_hook(change, with_kwargs=True)
                )
        yield


def matrices(model, ids, positions=None):
    """Return the attention of one prompt (T,) in every layer, (L, H, T, T), at these
    rotary positions if any.
    """
    decoder, given = (
        model.get_decoder(),
        {} if positions is None else {"position_ids": positions[None]},
    )
    with hidden_by_hand(model, None, ()), torch.inference_mode():
        # With a mask positions that go back are not taken for those of a second prompt.
        mask = torch.ones(1, len(ids), dtype=torch.long)
        found = decoder(
            ids[None],
            attention_mask=mask,
            output_attentions=True,
            use_cache=False,
            **given,
        ).attentions
    assert len(found) == len(decoder.layers)
    return torch.stack([attention[0, ..., : len(ids)] for attention in found])


def received(attention):
    """Return what each token receives of the later ones, (..., T) of matrices (..., T,
    T): the definition.
    """
    below = torch.tril(torch.ones(attention.shape[-2:]), -1)
    return (attention * below).sum(-2) / below.sum(-2)


def outputs_of(model, ids, *names):
    """Return by (layer, name) what these modules of each layer put out for one prompt
    (T,), without the batch.
    """
    found = {}
    with contextlib.ExitStack() as hooks, torch.inference_mode():
        for number, layer in enumerate(model.get_decoder().layers, 1):
            for name in names:

                def keep(module, inputs, output, place=(number, name)):
                    found[place] = output[0]

                hooks.enter_context(
                    layer.get_submodule(name).register_forward_hook(keep)
                )
        model.get_decoder()(ids[None], use_cache=False)
    return found
