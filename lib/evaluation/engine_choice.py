"""Choose the engine that generates answers if the settings say `engine: auto`."""

import importlib.util
from pathlib import Path

from lib.errors import InputError
from lib.files.run_json import RUN, read_settings
from lib.profiles import Accuracy


def resolve_engine(accuracy: Accuracy, folder: Path) -> tuple[Accuracy, str]:
    """Return the settings with `auto` replaced by an engine, and the reason for the
    choice ("" if the settings already name an engine).

    A folder keeps the engine that it was begun with. A new folder gets vLLM if it can
    run here and no condition has ARM, else transformers. Raises InputError for ARM in a
    folder begun with vLLM.
    """
    if accuracy.engine != "auto":
        return accuracy, ""
    arm = [str(condition) for condition in accuracy.conditions if condition.arm]
    begun = read_settings(folder).get("engine") if (folder / RUN).is_file() else None
    if arm and begun == "vllm":
        raise InputError(
            f"{arm[0]}: {folder} was begun with engine vllm, which does not run ARM:"
            " use another folder"
        )
    if begun:
        engine, reason = begun, "the folder was begun with it"
    elif reason := f"{arm[0]} needs it" if arm else why_not_vllm(accuracy):
        engine = "transformers"
    else:
        engine, reason = "vllm", "it is installed, and there is a GPU"
    return accuracy.model_copy(update={"engine": engine}), reason


def why_not_vllm(accuracy: Accuracy) -> str:
    """Return why vLLM cannot generate answers on a GPU here; "" if it can."""
    if not importlib.util.find_spec("vllm"):
        return "vLLM is not installed"
    return "" if generation_device(accuracy) == "cuda" else "there is no GPU with CUDA"


def generation_device(accuracy: Accuracy) -> str:
    """Return the kind of device, "cpu" or "cuda", that generates the answers, in this
    process or in workers.
    """
    if accuracy.workers and accuracy.gpus_per_worker is not None:
        return "cuda" if accuracy.gpus_per_worker else "cpu"
    import torch  # imported here, so that stored answers load without it

    return "cuda" if torch.cuda.is_available() else "cpu"
