"""A model on the hub: all of its files, or all but its weights, in the usual cache.

    folder = snapshot("Qwen/Qwen2.5-0.5B-Instruct")   # .../snapshots/<commit>

Neither pickles nor code are fetched.
"""

from pathlib import Path

from huggingface_hub import (
    constants,
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    snapshot_download,
    try_to_load_from_cache,
)
from huggingface_hub.utils import disable_progress_bars

from lib.models.load_errors import hub_errors
from lib.progress import ending_bars

SMALL_FILES = ["*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken"]
# The same weights once more, in other formats.
DUPLICATES = ["*/*", "consolidated*.safetensors"]


def snapshot(repo: str, revision: str | None = None, weights: bool = True) -> Path:
    """Return the folder, named after its commit, of the whole model.

    Without `weights` it holds all but these. Raises InputError.
    """
    patterns = SMALL_FILES.copy()
    if weights:
        patterns.append("*.safetensors")
    with hub_errors(repo, revision), ending_bars() as bar_class:
        folder = snapshot_download(
            repo,
            revision=revision,
            allow_patterns=patterns,
            ignore_patterns=DUPLICATES,
            tqdm_class=bar_class,
            local_files_only=constants.HF_HUB_OFFLINE,
        )
    return Path(folder)


def config_folder(repo: str, revision: str | None = None) -> Path:
    """Return the folder, named after its commit, that holds a model's config.json.

    Nothing else is fetched. Raises InputError.
    """
    disable_progress_bars()  # the hub's own: a config is a kilobyte
    place = {"repo_id": repo, "filename": "config.json", "revision": revision}
    with hub_errors(repo, revision):
        if not isinstance(try_to_load_from_cache(**place), str):
            # Without a hub this fails at once, where the download would try again for
            # half a minute.
            get_hf_file_metadata(hf_hub_url(**place))
        return Path(hf_hub_download(**place)).parent
