"""A model of which one stage at a time has its weights: embedding, layers, and head.

What is left, such as norms, is small and stays. The weights' names are transformers'
own business: its loader puts them where a family wants them, also merged experts.

The head of a vocabulary of 150,000 is as large as two or three layers: its weights stay
as they are stored, bfloat16 as a rule, and its product is taken slice by slice.
"""

import functools
from collections.abc import Mapping
from typing import Any, cast

import torch
from transformers import PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import (
    WeightConverter,
    WeightRenaming,
    convert_and_load_state_dict_in_model,
    rename_source_key,
)
from transformers.modeling_utils import LoadStateDictConfig

from lib.errors import InputError
from lib.models.checkpoint import NOT_THE_DECODER
from lib.models.tensors import FolderTensors, HubTensors

# Words of the vocabulary whose weights are widened at once: 117 MB of a 7B's.
SLICE = 8192


class Stages:
    """The stages of a model, whose weights come and go.

    model: as `empty_model` gives it; tensors: those of its checkpoint. Raises
    InputError where the checkpoint lacks some.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tensors: FolderTensors | HubTensors,
        dtype: torch.dtype,
        device: str,
    ):
        self.model = model
        self.device = device
        self._names = model.state_dict()
        self._module_names = {module: name for name, module in model.named_modules()}
        embedding: Any = model.get_input_embeddings()
        layers = model.get_decoder().get_submodule("layers").children()
        self.head = cast(Any, model.get_output_embeddings())
        self.modules: list[Any] = [embedding, *layers, self.head]
        self.dtype = dtype
        self._tensors = tensors
        mapping: list[Any] = get_model_conversion_mapping(model)
        self._renamings = [each for each in mapping if isinstance(each, WeightRenaming)]
        self._converters = [
            each for each in mapping if isinstance(each, WeightConverter)
        ]
        self._loading = LoadStateDictConfig(
            device_map={"": device},
            dtype=dtype,
            dtype_plan=model._get_dtype_plan(dtype),
            weight_mapping=mapping,
        )
        self._files, resident = self._by_stage(tensors.files)

        # Where both are one, the head's weights are read as the embedding's.
        self.is_tied = self.head.weight is embedding.weight
        if self.is_tied:
            self._files[-1] = self._files[0]
        else:  # no forward that is tried goes so far
            self._require_head()
        self._head_is_sliced = _is_one_product(self.head) and len(self._files[-1]) == 1
        if self._head_is_sliced:
            self.head.forward = functools.partial(_in_slices, self.head)
        self._load(resident)
        self._move_buffers()
        self._require(model.get_decoder(), except_for=self.modules)
        for module in (*self.modules, *_unread(model)):
            self._empty(module)

    def put(self, stage: int) -> None:
        """Read the weights of a stage; InputError where some are missing."""
        module = self.modules[stage]
        if module is self.head:
            self._put_head()
        else:
            self._load(self._files[stage])
            self._tensors.expect(self._files[stage + 1])
        self._require(module)

    def free(self, stage: int) -> None:
        """Let the weights of a stage go."""
        self._empty(self.modules[stage])
        if self.is_tied and self.modules[stage] is self.head:
            self._empty(self.modules[0])

    def _put_head(self) -> None:
        """Read the head's weights, as they are stored where its product is sliced."""
        files = self._files[-1]
        if self._head_is_sliced:
            (weight,) = self._tensors.read(files, None).values()
            weight = weight.to(self.device)
            self.head.weight = torch.nn.Parameter(weight, requires_grad=False)
            return
        self._load(files)
        if self.is_tied:
            self.head.weight = self.modules[0].weight

    def _by_stage(
        self, files: Mapping[str, str]
    ) -> tuple[list[dict[str, str]], dict[str, str]]:
        """Return the tensors of each stage, and those of the decoder that stay."""
        names = self._module_names
        stages: list[dict[str, str]] = [{} for _ in self.modules]
        resident = {}
        for tensor, file in files.items():
            parameter = self._parameter_of(tensor)
            for module, of_stage in zip(self.modules, stages, strict=True):
                if parameter.startswith(f"{names[module]}."):
                    of_stage[tensor] = file
                    break
            else:
                if not NOT_THE_DECODER.search(tensor):
                    resident[tensor] = file
        return stages, resident

    def _parameter_of(self, tensor: str) -> str:
        """Return the name of the parameter that a checkpoint's tensor goes into."""
        prefix = self.model.base_model_prefix
        name, _ = rename_source_key(
            tensor, self._renamings, self._converters, prefix, self._names
        )
        if name not in self._names and tensor in self._names:
            name, _ = rename_source_key(tensor, [], [], prefix, self._names)
        return name

    def _load(self, files: Mapping[str, str]) -> None:
        """Read tensors and put them into the model."""
        tensors = self._tensors.read(files, self.dtype)
        convert_and_load_state_dict_in_model(self.model, tensors, self._loading)

    def _require(self, part: torch.nn.Module, except_for=()) -> None:
        """Raise InputError where a part of the model lacks weights."""
        elsewhere = {
            parameter for module in except_for for parameter in module.parameters()
        }
        missing = [
            name
            for name, parameter in part.named_parameters(self._module_names[part])
            if _is_absent(parameter) and parameter not in elsewhere
        ]
        _refuse_without(missing)

    def _require_head(self) -> None:
        """Raise InputError where the checkpoint lacks weights of the head."""
        found = {self._parameter_of(tensor) for tensor in self._files[-1]}
        named = self.head.named_parameters(self._module_names[self.head])
        _refuse_without([name for name, _ in named if name not in found])

    def _empty(self, module: torch.nn.Module) -> None:
        """Put NaN, which take no memory, in the place of a module's weights."""
        for part in module.modules():
            for name, parameter in part.named_parameters(recurse=False):
                setattr(part, name, _absent(parameter, self.device))

    def _move_buffers(self) -> None:
        """Move what is computed from the config to the device."""
        for part in self.model.modules():
            for name, buffer in part.named_buffers(recurse=False):
                setattr(part, name, buffer.to(self.device))


def _refuse_without(missing: list[str]) -> None:
    """Raise InputError where parameters are missing."""
    if missing:
        raise InputError(
            f"the checkpoint lacks {len(missing)} tensors, the first is {missing[0]}"
        )


def _is_one_product(head: torch.nn.Module) -> bool:
    """Say whether a head multiplies with its weights and does nothing else."""
    return type(head) is torch.nn.Linear and head.bias is None


def _in_slices(head: torch.nn.Module, hidden: torch.Tensor) -> torch.Tensor:
    """Return the logits (..., vocabulary) of hidden states, some words at a time."""
    weights = cast(torch.Tensor, head.weight)
    logits = hidden.new_empty(*hidden.shape[:-1], len(weights))
    for start in range(0, len(weights), SLICE):
        words = slice(start, start + SLICE)
        logits[..., words] = hidden @ weights[words].to(hidden.dtype).T
    return logits


def _unread(model: torch.nn.Module) -> list[torch.nn.Module]:
    """Return the modules that no forward of the decoder needs, such as an eye."""
    return [
        module
        for module in model.modules()
        if any(parameter.is_meta for parameter in module.parameters(recurse=False))
    ]


def _absent(parameter: torch.Tensor, device: str) -> torch.nn.Parameter:
    """Return one number in the shape of a parameter."""
    number = torch.nan if parameter.is_floating_point() else 0
    scalar = torch.full((), number, dtype=parameter.dtype, device=device)
    in_shape = scalar.expand(parameter.shape)
    return torch.nn.Parameter(in_shape, requires_grad=False)


def _is_absent(parameter: torch.Tensor) -> bool:
    is_one_number = parameter.numel() > 1 and not any(parameter.stride())
    return parameter.is_meta or is_one_number
