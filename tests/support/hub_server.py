"""A stand-in for the model hub: serves folders under real ids, counts what it sends, misbehaves on demand.

A folder is FOLDER/Qwen/Qwen2.5-Math-7B. As on the real hub, weights lie on another host, to which a request is
redirected.

    with HubServer(folder) as server: ...server.url, server.sent
"""

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from huggingface_hub import constants
from safetensors import safe_open

REPO = r"(?P<repo>[^/]+/[^/]+)"
API = re.compile(rf"/api/models/{REPO}(/(?P<what>revision|tree)/(?P<revision>[^/]+))?")
FILE = re.compile(rf"(?P<stored>/storage)?/{REPO}/resolve/(?P<revision>[^/]+)/(?P<file>.+)")
COMMIT = re.compile(r"[0-9a-f]{40}")
RANGE = re.compile(r"bytes=(\d+)-(\d+)")
PORTION = 1 << 16  # bytes


class HubServer:
    """Serves on 127.0.0.1 from a thread, as long as the block lasts.

    Switches: `gated` (repository -> 401 or 403 for its files), `lost` (commits that are no longer there),
    `ignore_range` (200 and the whole file), and `break_after` (cut the connection once, when so many bytes of
    weights have been sent).
    """

    def __init__(self, root: Path):
        self.root = root
        self.gated: dict[str, int] = {}
        self.lost: set[str] = set()
        self.ignore_range = False
        self.break_after: int | None = None
        self.lock = threading.Lock()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.hub = self
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.reset()

    def reset(self) -> None:
        """Forget the counts: `sent` and `sent_weights` in bytes, `ranged` requests for a part of a file."""
        self.sent = self.sent_weights = self.ranged = 0

    def commit(self, repo: str) -> str:
        """Return the one commit of a repository: it changes with the names and sizes of the files."""
        state = [(path.name, path.stat().st_size) for path in self.files(repo)]
        return hashlib.sha1(repr((repo, state)).encode()).hexdigest()

    def resolve(self, repo: str, revision: str) -> str | None:
        """Return the commit that `revision` stands for; callers pin real ones, so all exist unless `lost`."""
        if COMMIT.fullmatch(revision):
            return None if revision in self.lost else revision
        return self.commit(repo) if revision == "main" else None

    def files(self, repo: str) -> list[Path]:
        return sorted(path for path in (self.root / repo).rglob("*") if path.is_file())

    def allowance(self, size: int) -> int:
        """Return how many of the next `size` bytes of weights may go out before the connection is cut."""
        with self.lock:
            if self.break_after is not None and self.sent_weights + size > self.break_after:
                size, self.break_after = self.break_after - self.sent_weights, None
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

    def do_GET(self) -> None:
        self.hub: HubServer = self.server.hub
        path = unquote(urlsplit(self.path).path)
        match = API.fullmatch(path) or FILE.fullmatch(path)
        if not match:
            return self.refuse(404, "EntryNotFound")
        if not (self.hub.root / match["repo"]).is_dir():
            return self.refuse(404, "RepoNotFound")
        commit = self.hub.resolve(match["repo"], match["revision"] or "main")
        if not commit:
            return self.refuse(404, "RevisionNotFound")
        if match.re is FILE:
            return self.send_file(match["repo"], commit, match["file"], bool(match["stored"]))
        return self.send_listing(match["repo"], commit, tree=match["what"] == "tree")

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
        files = {path.relative_to(self.hub.root / repo).as_posix(): path for path in self.hub.files(repo)}
        if tree:
            given = {"type": "file"}
            content = [given | {"path": n, "oid": etag(p), "size": p.stat().st_size} for n, p in files.items()]
        else:
            content = {"_id": repo, "id": repo, "modelId": repo, "sha": commit, "private": False, "tags": []}
            content |= {"downloads": 0, "likes": 0, "siblings": [{"rfilename": name} for name in files]}
        body = json.dumps(content).encode()
        self.answer(200, {"Content-Type": "application/json"}, len(body))
        self.send_body(body)

    def send_file(self, repo: str, commit: str, file: str, stored: bool) -> None:
        path, headers = self.hub.root / repo / file, {"X-Repo-Commit": commit}
        if repo in self.hub.gated:
            return self.refuse(self.hub.gated[repo], "GatedRepo")
        if not path.is_file():
            return self.refuse(404, "EntryNotFound", **headers)
        size = path.stat().st_size
        if path.suffix == ".safetensors" and not stored:
            headers |= {"X-Linked-Size": str(size), "X-Linked-ETag": f'"{etag(path)}"'}
            headers["Location"] = f"http://localhost:{self.server.server_port}/storage{self.path}"
            return self.answer(302, headers, 0)
        headers |= {"ETag": f'"{etag(path)}"', "Accept-Ranges": "bytes"}
        start, stop, asked = 0, size, RANGE.fullmatch(self.headers.get("Range", ""))
        if asked and not self.hub.ignore_range:
            self.hub.ranged += 1
            start, stop = int(asked[1]), min(int(asked[2]) + 1, size)
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        self.answer(206 if "Content-Range" in headers else 200, headers, stop - start)
        with open(path, "rb") as stream:
            stream.seek(start)
            while start < stop and not self.close_connection:
                portion = stream.read(min(PORTION, stop - start))
                weights = path.suffix == ".safetensors" and self.command == "GET"
                allowed = self.hub.allowance(len(portion)) if weights else len(portion)
                self.send_body(portion[:allowed])
                self.close_connection |= allowed < len(portion)
                start += len(portion)

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


def point_at(url: str, patch) -> None:
    """Let a hub at this address take the real one's place in this process, which read HF_ENDPOINT long ago."""
    patch.setattr(constants, "ENDPOINT", url)
    patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")


def needed_bytes(folder: Path, layers: int) -> int:
    """Return how many bytes the first layers' tensors, embedding and final norm have in a checkpoint's shards."""
    total = 0
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "pt") as shard:
            for name in shard.keys():  # noqa: SIM118
                layer = re.search(r"layers\.(\d+)\.", name)
                if "lm_head" not in name and (layer is None or int(layer[1]) < layers):
                    total += shard.get_tensor(name).nbytes
    return total


def etag(path: Path) -> str:
    status = path.stat()
    return hashlib.sha1(f"{path.name} {status.st_size} {status.st_mtime_ns}".encode()).hexdigest()
