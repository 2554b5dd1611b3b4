"""A stand-in for the model hub: serves folders under real ids, counts what it sends, misbehaves on demand.

A folder is FOLDER/Qwen/Qwen2.5-Math-7B, or FOLDER/datasets/HuggingFaceH4/MATH-500 for a data set. As on the real
hub, weights lie on another host, to which a request is redirected.

By hand:   python tests/support/hub_server.py FOLDER --port 8123     (`stand_in_models` fills FOLDER)
           HF_ENDPOINT=http://127.0.0.1:8123 python -m lib ...
In tests:  with HubServer(folder) as server: ...server.url, server.sent
"""

import argparse
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import datasets
from huggingface_hub import constants
from safetensors import safe_open

from lib.models.first_layers import needed

REPO = r"(?P<repo>(datasets/)?[^/]+/[^/]+)"
API = re.compile(rf"/api/(models/|(?=datasets/)){REPO}(/(?P<what>revision|tree)/(?P<revision>[^/]+))?")
FILE = re.compile(rf"(?P<stored>/storage)?/{REPO}/resolve/(?P<revision>[^/]+)/(?P<file>.+)")
COMMIT = re.compile(r"[0-9a-f]{40}")
RANGE = re.compile(r"bytes=(\d+)-(\d+)?")
PORTION = 1 << 16  # bytes


class HubServer:
    """Serves on 127.0.0.1 from a thread, as long as the block lasts.

    Switches: `gated` (repository -> 401 or 403 for its files), `lost` (commits that are no longer there),
    `ignore_range` (200 and the whole file), and `break_after` (cut the connection once, when so many bytes of
    weights have been sent).
    """

    def __init__(self, root: Path, port: int = 0):
        self.root = Path(root)
        self.gated: dict[str, int] = {}
        self.lost: set[str] = set()
        self.ignore_range = False
        self.break_after: int | None = None
        self.lock = threading.Lock()
        self.http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.http.daemon_threads = True
        self.http.hub = self
        self.reset()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}"

    def reset(self) -> None:
        """Forget the counts: `sent` and `sent_weights` in bytes, `requests` as (method, path, range).

        Where a request was redirected, only the first is noted.
        """
        self.sent = self.sent_weights = 0
        self.requests: list[tuple[str, str, str | None]] = []

    def stand_in(self, patch, cache: Path) -> None:
        """Take the hub's place in this process, which read HF_ENDPOINT and the like long ago."""
        address = self.url + "/{repo_id}/resolve/{revision}/{filename}"
        for name, value in {"ENDPOINT": self.url, "HUGGINGFACE_CO_URL_TEMPLATE": address}.items():
            patch.setattr(constants, name, value)
        patch.setattr(constants, "HF_HUB_CACHE", str(cache / "hub"))
        patch.setattr(datasets.config, "HF_ENDPOINT", self.url)
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", cache / "datasets")

    def commit(self, repo: str) -> str:
        """Return the one commit of a repository: it changes with the names and sizes of the files."""
        state = [(path.name, path.stat().st_size) for path in self.files(repo)]
        return hashlib.sha1(repr((repo, state)).encode()).hexdigest()

    def resolve(self, repo: str, revision: str) -> str | None:
        """Return the commit that `revision` stands for; callers pin real ones, so all exist unless `lost`."""
        if COMMIT.fullmatch(revision):
            return None if revision in self.lost else revision
        commit = self.commit(repo)
        return commit if revision == "main" else None

    def files(self, repo: str) -> list[Path]:
        return sorted(path for path in (self.root / repo).rglob("*") if path.is_file())

    def allowance(self, size: int) -> int:
        """Return how many of the next `size` bytes of weights may go out before the connection is cut."""
        with self.lock:
            if self.break_after is not None and self.sent_weights + size > self.break_after:
                size = self.break_after - self.sent_weights
                self.break_after = None
            self.sent_weights += size
        return size

    def __enter__(self) -> "HubServer":
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.http.shutdown()
        self.http.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Status line, headers and body arrive in several writes; without this each waits for an acknowledgement.
    disable_nagle_algorithm = True

    @property
    def hub(self) -> HubServer:
        return self.server.hub

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        match = API.fullmatch(path) or FILE.fullmatch(path)
        stored = bool(match) and bool(match.groupdict().get("stored"))
        if not stored:
            with self.hub.lock:
                self.hub.requests.append((self.command, path, self.headers.get("Range")))
        if not match:
            return self.refuse(404, "EntryNotFound")
        repo = match["repo"]
        if not (self.hub.root / repo).is_dir():
            return self.refuse(404, "RepoNotFound")
        commit = self.hub.resolve(repo, match["revision"] or "main")
        if not commit:
            return self.refuse(404, "RevisionNotFound")
        if match.re is FILE:
            return self.send_file(repo, commit, match["file"], stored)
        return self.send_listing(repo, commit, tree=match["what"] == "tree")

    do_HEAD = do_GET

    def log_message(self, *_) -> None:
        pass

    def refuse(self, status: int, code: str, **headers: str) -> None:
        self.answer(status, {"X-Error-Code": code, "X-Error-Message": code, **headers}, 0)

    def answer(self, status: int, headers: dict[str, str], length: int) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()

    def send_listing(self, repo: str, commit: str, tree: bool) -> None:
        root = self.hub.root / repo
        names = {path.relative_to(root).as_posix(): path for path in self.hub.files(repo)}
        if tree:
            content = [
                {"type": "file", "oid": etag(path), "size": path.stat().st_size, "path": name}
                for name, path in names.items()
            ]
        else:
            siblings = [{"rfilename": name} for name in names]
            content = {"_id": repo, "id": repo, "modelId": repo, "sha": commit}
            content |= {"private": False, "tags": [], "downloads": 0, "likes": 0, "siblings": siblings}
        body = json.dumps(content).encode()
        self.answer(200, {"Content-Type": "application/json"}, len(body))
        self.send_body(body)

    def send_file(self, repo: str, commit: str, file: str, stored: bool) -> None:
        path = self.hub.root / repo / file
        if repo in self.hub.gated:
            return self.refuse(self.hub.gated[repo], "GatedRepo")
        headers = {"X-Repo-Commit": commit}
        if not path.is_file():
            return self.refuse(404, "EntryNotFound", **headers)
        size = path.stat().st_size
        if path.suffix == ".safetensors" and not stored:
            headers |= {"X-Linked-Size": str(size), "X-Linked-ETag": f'"{etag(path)}"'}
            headers["Location"] = f"http://localhost:{self.server.server_port}/storage{self.path}"
            return self.answer(302, headers, 0)
        headers |= {"ETag": f'"{etag(path)}"', "Accept-Ranges": "bytes"}
        asked = RANGE.fullmatch(self.headers.get("Range", ""))
        if not asked or self.hub.ignore_range:
            self.answer(200, headers, size)
            return self.send_part(path, 0, size)
        start, stop = int(asked[1]), min(int(asked[2] or size - 1) + 1, size)
        if start >= size:
            return self.answer(416, {**headers, "Content-Range": f"bytes */{size}"}, 0)
        self.answer(206, {**headers, "Content-Range": f"bytes {start}-{stop - 1}/{size}"}, stop - start)
        self.send_part(path, start, stop)

    def send_part(self, path: Path, start: int, stop: int) -> None:
        if self.command == "HEAD":
            return
        with open(path, "rb") as stream:
            stream.seek(start)
            while start < stop:
                portion = stream.read(min(PORTION, stop - start))
                start += len(portion)
                allowed = len(portion)
                if path.suffix == ".safetensors":
                    allowed = self.hub.allowance(allowed)
                self.send_body(portion[:allowed])
                if allowed < len(portion):
                    self.close_connection = True
                    return

    def send_body(self, body: bytes) -> None:
        if self.command == "HEAD":
            return
        try:
            self.wfile.write(body)
        except ConnectionError:  # a reader that has seen enough hangs up
            self.close_connection = True
            return
        with self.hub.lock:
            self.hub.sent += len(body)


def needed_bytes(folder: Path, layers: int) -> int:
    """Return how many bytes the first layers' tensors have in a checkpoint's shards."""
    total = 0
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "pt") as shard:
            total += sum(shard.get_tensor(name).nbytes for name in shard.keys() if needed(name, layers))  # noqa: SIM118
    return total


def etag(path: Path) -> str:
    status = path.stat()
    return hashlib.sha1(f"{path.name} {status.st_size} {status.st_mtime_ns}".encode()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the models of a folder as a model hub would.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    with HubServer(arguments.folder, arguments.port) as server:
        print(f"HF_ENDPOINT={server.url}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
