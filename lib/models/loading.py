"""Load a tokenizer and a decoder, complete or only its first layers, with the weights
of a checkpoint or with random ones.

    loaded = load("Qwen/Qwen2.5-Math-7B", layers=3)
    loaded.model, loaded.tokenizer, loaded.revision

If memory is too small, weights can stay on disk, from which accelerate reads them in
each forward pass. Weights are read only from safetensors, and no code of a checkpoint
is run.
"""

import functools
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from lib import paths
from lib.attention.equivalence_check import check_attention
from lib.attention.model_properties import longest_context
from lib.errors import InputError
from lib.files.row_store import settings_key
from lib.models.available_memory import free_memory
from lib.models.checkpoint import (
    checkpoint_errors,
    require_all_tensors,
    require_config,
    require_layers,
    require_weights,
)
from lib.models.conversion import converted, quiet
from lib.models.hub import first_layers, snapshot
from lib.models.sources import Source, resolve, revision_of

# Prefix of the decoder's tensors in a multimodal checkpoint, and its replacement.
TEXT_PREFIX = {r"^(?:model\.)?language_model\.(?:model\.)?": "model."}
# Share of the free memory that weights may use before they stay on disk.
SHARE_OF_MEMORY = 0.5


@dataclass(frozen=True)
class Loaded:
    """A model with its tokenizer, and the properties that results record."""

    model: transformers.PreTrainedModel
    tokenizer: Any
    # The origin of the weights; its revision is the commit on the hub, or a digest of
    # the files.
    source: Source
    device: str  # such as cpu or cuda; never auto
    dtype: str  # such as float32; never auto

    @property
    def name(self) -> str:
        """The model's name in figures."""
        return self.source.name

    @property
    def spec(self) -> str:
        """The model as the user wrote it."""
        return self.source.spec

    @property
    def revision(self) -> str:
        return str(self.source.revision)

    @property
    def layers(self) -> int:
        """Number of decoder layers that are loaded."""
        return self.model.config.get_text_config().num_hidden_layers

    @property
    def heads(self) -> int:
        return self.model.config.get_text_config().num_attention_heads

    @property
    def context(self) -> int:
        """Maximum number of tokens of a prompt with its answer, as `longest_context`
        defines it; raises InputError if the config has no maximum.
        """
        positions = longest_context(self.model.config.get_text_config())
        if positions is None:
            raise InputError(f"{self.spec}: its config.json names no longest context")
        return positions


def load(
    spec: str | Path,
    layers: int | None = None,
    device: str = "auto",
    dtype: str = "auto",
    seed: int | None = None,
) -> Loaded:
    """Return a model that is ready to run, with its tokenizer.

    spec: a model, as in `lib.models.sources`. layers: load only the embedding
    and so many first decoder layers, without output head; None: all. device: auto is
    CUDA if there is a GPU. dtype: auto is float32 on CPU and bfloat16 on CUDA. seed:
    for an untrained network, whose random weights are those with which the architecture
    is initialised, without output head; None: the trained weights.

    Raises InputError for an unknown spec; for missing, damaged or pickled weights; for
    weights that do not fit the config; for more layers than the model has; for a
    missing device; and for a model whose attention `lib.attention` does not reproduce
    on ten tokens.
    """
    device, dtype = placement(device, dtype)
    return _loaded(resolve(spec), layers, device, dtype, seed)


def load_without_weights(
    spec: str, device: str = "auto", dtype: str = "auto", *, fetch: bool = True
) -> Loaded:
    """Return a complete model with its tokenizer, whose weights are not read.

    This suffices to build prompts and keys of completions. fetch: whether weights on
    the hub are downloaded for a later use. The device need not exist on this machine.
    Raises InputError as `load` does for an unknown spec and for a folder that is no
    checkpoint.
    """
    device, dtype = placement(device, dtype)
    source, folder = _found(resolve(spec), dtype, fetch=fetch)
    with checkpoint_errors(spec, folder):
        config = read_config(folder)
        tokenizer = read_tokenizer(folder)
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
        model.name_or_path = str(folder)
        if (folder / "generation_config.json").is_file():
            model.generation_config = transformers.GenerationConfig.from_pretrained(
                folder
            )
    return Loaded(model, tokenizer, source, device, dtype)


def with_weights(loaded: Loaded, *, offload: bool = False) -> Loaded:
    """Return a model that was loaded without weights, with its weights and ready to
    run.

    offload: weights beyond half of the free memory stay on disk. Raises InputError as
    `load` does for the weights, the device and the attention.
    """
    # The source's revision is a commit, so that a newer one on the hub is not used.
    return _loaded(loaded.source, None, loaded.device, loaded.dtype, offload=offload)


def _loaded(
    source: Source,
    layers: int | None,
    device: str,
    dtype: str,
    seed: int | None = None,
    offload: bool = False,
) -> Loaded:
    """Return a model with its weights, ready to run; see `load`."""
    if device.startswith("cuda"):
        if not torch.cuda.is_available():
            raise InputError(
                f"device {device} was requested, but torch {torch.__version__} sees no"
                " GPU: use device cpu"
            )
        # For each new shape, cuDNN would plan for up to half a second.
        torch.backends.cuda.enable_cudnn_sdp(False)
    source, folder = _found(source, dtype, layers)
    with checkpoint_errors(source.spec, folder):
        config = read_config(folder)
        tokenizer = read_tokenizer(folder)
        if layers is not None or seed is not None:
            config = cut_config(config, layers, folder)
        if seed is None:
            has_head = layers is None
            model = checkpoint_model(folder, config, has_head, device, dtype, offload)
        else:
            model = random_model(config, device, dtype, seed)
    if offload and any(weight.is_meta for weight in model.parameters()):
        print(
            f"{source.spec}: the weights need more than half of the free memory, so"
            " some of them stay on disk",
            file=sys.stderr,
        )
    check_attention(model)
    if seed is not None:
        untrained = f"untrained {seed}"
        named = {
            "name": f"{source.name} {untrained}",
            "revision": f"{source.revision} {untrained}",
        }
        source = source.model_copy(update=named)
    return Loaded(model, tokenizer, source, device, dtype)


def placement(device: str, dtype: str) -> tuple[str, str]:
    """Return the device and the dtype that `auto` resolves to; raise InputError for an
    unknown kind of device.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise InputError(f"device {device!r} is not supported: give auto, cpu or cuda")
    if dtype == "auto":
        dtype = "float32" if device == "cpu" else "bfloat16"
    return device, dtype


def _found(
    source: Source, dtype: str, layers: int | None = None, fetch: bool = True
) -> tuple[Source, Path]:
    """Return a source with its revision, and the folder of its checkpoint, which is
    downloaded or converted if necessary.
    """
    if source.gguf:
        folder = converted(source, dtype)
    elif source.folder:
        folder = source.folder
    elif layers is None:
        folder = snapshot(source.repo, source.revision, fetch)
    else:
        folder = first_layers(source.repo, layers, source.revision)
    # The folder of a repository is named after its commit.
    revision = folder.name if source.repo else revision_of(source)
    return source.model_copy(update={"revision": revision}), folder


def read_config(folder: Path) -> transformers.PretrainedConfig:
    """Return a checkpoint's config; raise InputError if there is none, or if the
    weights are quantised.

    An attention implementation that config.json names is not used, because it may have
    to be installed or downloaded, nor are its options for what a forward pass returns.
    If an architecture caps its attention scores, as Gemma 2 does, the config requests
    eager attention, because sdpa, the default of transformers, ignores the cap.
    """
    require_config(folder)
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
    quantisation = getattr(config, "quantization_config", None)
    if quantisation:
        method = dict(quantisation).get("quant_method", "unknown")
        raise InputError(
            f"{folder}: config.json says that its weights are quantised ({method}),"
            " which is not supported: use the original model"
        )
    decoder = config.get_text_config()
    for part in (config, decoder):
        part.return_dict, part.output_attentions = True, False
        part.output_hidden_states = False
    capped = getattr(decoder, "attn_logit_softcapping", None)
    config._attn_implementation = "eager" if capped else None
    return config


# Cached, so that prompts built with the tokenizer need not be built again.
@functools.lru_cache(maxsize=2)
def read_tokenizer(folder: Path) -> Any:
    """Return a checkpoint's tokenizer; raise InputError if it does not return character
    offsets, and for a chat_template.json without a template.
    """
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(
        folder, trust_remote_code=False
    )
    if not tokenizer.is_fast:
        raise InputError(
            f"{folder}: its tokenizer gives no character offsets, so token spans"
            " cannot be exact"
        )
    template = folder / "chat_template.json"  # transformers reads it of processors only
    if not tokenizer.chat_template and template.is_file():
        try:
            content = json.loads(template.read_text(encoding="utf-8"))
            tokenizer.chat_template = content["chat_template"]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{template} has no chat_template: download it again, or delete it to"
                " use plain prompts"
            ) from error
    return tokenizer


def cut_config(
    config: transformers.PretrainedConfig, layers: int | None, folder: Path
) -> transformers.PretrainedConfig:
    """Return the config of a model's decoder, reduced to its first layers; None: all
    layers.

    Raises InputError for more layers than the model has.
    """
    decoder = config.get_text_config()
    if layers is None:
        return decoder
    total = decoder.num_hidden_layers
    require_layers(layers, total, str(folder))
    for name, value in list(vars(decoder).items()):
        is_per_layer = isinstance(value, list) and len(value) == total
        if "layer" in name and is_per_layer:
            setattr(decoder, name, value[:layers])
    decoder.num_hidden_layers = layers
    return decoder


def random_model(
    config: transformers.PretrainedConfig, device: str, dtype: str, seed: int
) -> transformers.PreTrainedModel:
    """Return a decoder, without output head, with random weights from a seed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = transformers.AutoModel.from_config(config, dtype=dtype)
    torch.nn.Module.to(model, device)
    return model.eval()


def checkpoint_model(
    folder: Path,
    config: transformers.PretrainedConfig,
    has_head: bool,
    device: str,
    dtype: str,
    offload: bool = False,
) -> transformers.PreTrainedModel:
    """Return a model with the weights of a checkpoint.

    has_head: whether the output head is loaded, too; otherwise only the decoder, which
    may have fewer layers than the checkpoint. offload: as in `with_weights`.
    Raises InputError if the weights cannot be used or do not fit the config.
    """
    auto: Any = (
        transformers.AutoModelForCausalLM if has_head else transformers.AutoModel
    )
    layers = None if has_head else config.get_text_config().num_hidden_layers
    require_weights(folder)
    offloaded = settings_key(checkpoint=str(folder), dtype=dtype)
    with quiet():
        model, report = auto.from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            device_map="auto" if offload else device,
            max_memory=_memory_for_weights(device) if offload else None,
            # For offloaded weights whose layout differs from the checkpoint's, such as
            # experts.
            offload_folder=paths.CACHE / "offload" / offloaded,
            key_mapping={} if has_head else TEXT_PREFIX,
            use_safetensors=True,
            # Mismatches are reported below, in one line.
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    require_all_tensors(report, f"{folder}: the checkpoint", layers)
    return model


def _memory_for_weights(device: str) -> dict[int | str, int]:
    """Return how many bytes weights may use, by accelerate's name of the device."""
    devices: dict[int | str, str] = {"cpu": "cpu"}
    if device.startswith("cuda"):
        devices = {torch.device(device).index or 0: device, **devices}
    return {
        key: int(SHARE_OF_MEMORY * free_memory(name)) for key, name in devices.items()
    }
