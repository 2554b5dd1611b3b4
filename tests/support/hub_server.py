"""A local server that takes the part of the model hub: it serves folders as
repositories, counts the bytes that it sends, and fails on demand.

As on the real hub, a request for weights is redirected to another host.
"""

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from huggingface_hub import constants

from lib import paths

REPO = r"(?P<repo>[^/]+/[^/]+)"
API = re.compile(rf"/api/models/{REPO}(/(?P<what>revision|tree)/(?P<revision>[^/]+))?")
FILE = re.compile(
    rf"(?P<stored>/storage)?/{REPO}/resolve/(?P<revision>[^/]+)/(?P<file>.+)"
)
RANGE = re.compile(r"bytes=(\d+)-(\d+)")
PORTION = 1 << 20  # bytes


class HubServer(ThreadingHTTPServer):
    """Serves folders such as root/Qwen/Qwen2.5-Math-7B on 127.0.0.1 from a thread until
    the `with` block ends.

    Switches: `gated` (repository -> status 401 or 403 for its files), `lost` (commits
    that no longer exist), `ignore_range` (answer a range request with status 200 and
    the entire file), and `break_after` (cut the connection once, after so many bytes of
    weights). Counts in bytes: `sent` and `sent_weights`.
    """

    daemon_threads = True

    def __init__(self, root: Path):
        super().__init__(("127.0.0.1", 0), Handler)
        self.root = root
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.lock = threading.Lock()
        self.gated = {}
        self.lost = set()
        self.ignore_range = False
        self.break_after = None
        self.sent = self.sent_weights = 0
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def __exit__(self, *given) -> None:
        self.shutdown()
        super().__exit__(*given)

    def commit(self, repo: str) -> str:
        """Return the one commit of a repository, which changes with the names and sizes
        of its files.
        """
        content = (repo, sorted(self.files(repo).items()))
        return hashlib.sha1(repr(content).encode()).hexdigest()

    def read(self, file: BinaryIO, size: int) -> bytes:
        """Return the next bytes of a file."""
        return file.read(size)

    def files(self, repo: str) -> dict[str, int]:
        """Return the sizes of a repository's files by name."""
        folder = self.root / repo
        sizes = {}
        for path in folder.rglob("*"):
            if path.is_file():
                name = path.relative_to(folder).as_posix()
                sizes[name] = path.stat().st_size
        return sizes


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Status line, headers and body arrive in several writes; without this each waits
    # for an acknowledgement.
    disable_nagle_algorithm = True
    server: HubServer

    def do_GET(self) -> None:
        hub = self.server
        path = unquote(urlsplit(self.path).path)
        match = API.fullmatch(path) or FILE.fullmatch(path)
        if not match:
            return self.refuse(404, "EntryNotFound")
        repo = match["repo"]
        commit = match["revision"] or "main"
        if not (hub.root / repo).is_dir():
            return self.refuse(404, "RepoNotFound")
        if commit in hub.lost or not re.fullmatch("main|[0-9a-f]{40}", commit):
            return self.refuse(404, "RevisionNotFound")
        if commit == "main":
            commit = hub.commit(repo)
        if match.re is API:
            return self.describe(repo, commit, as_tree=match["what"] == "tree")
        file = hub.root / repo / match["file"]
        return self.send_file(repo, commit, file, bool(match["stored"]))

    do_HEAD = do_GET

    def log_message(self, *_) -> None:
        pass

    def describe(self, repo: str, commit: str, as_tree: bool) -> None:
        """Send the list of a repository's files in one of the hub's two formats."""
        files = []
        for name, size in self.server.files(repo).items():
            entry = {"type": "file", "size": size, "oid": name}
            files.append({**entry, "path": name, "rfilename": name})
        content = files if as_tree else {"id": repo, "sha": commit, "siblings": files}
        body = json.dumps(content).encode()
        self.answer(200, len(body), {"Content-Type": "application/json"})
        self.send_body(body)

    def refuse(self, status: int, code: str, **headers: str) -> None:
        error = {"X-Error-Code": code, "X-Error-Message": code}
        self.answer(status, 0, {**error, **headers})

    def answer(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def send_file(self, repo: str, commit: str, path: Path, stored: bool) -> None:
        hub = self.server
        headers = {"X-Repo-Commit": commit}
        if repo in hub.gated:
            return self.refuse(hub.gated[repo], "GatedRepo")
        if not path.is_file():
            return self.refuse(404, "EntryNotFound", **headers)
        size = path.stat().st_size
        tag = f'"{etag(path)}"'
        is_weights = path.suffix == ".safetensors"
        if is_weights and not stored:
            headers["X-Linked-Size"] = str(size)
            headers["X-Linked-ETag"] = tag
            headers["Location"] = (
                f"http://localhost:{hub.server_port}/storage{self.path}"
            )
            return self.answer(302, 0, headers)

        headers["ETag"] = tag
        headers["Accept-Ranges"] = "bytes"
        start, stop, status = 0, size, 200
        requested = RANGE.fullmatch(self.headers.get("Range", ""))
        if requested and not hub.ignore_range:
            status = 206
            start = int(requested[1])
            stop = min(int(requested[2]) + 1, size)
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        self.answer(status, stop - start, headers)
        with open(path, "rb") as file:
            file.seek(start)
            while start < stop and not self.close_connection:
                portion = hub.read(file, min(PORTION, stop - start))
                start += self.send_body(portion, is_weights)

    def send_body(self, body: bytes, weights: bool = False) -> int:
        """Send a body, or its part before `break_after`; return its full length."""
        hub = self.server
        allowed = len(body)
        if self.command == "HEAD":
            return allowed
        with hub.lock:
            if weights and hub.break_after is not None:
                left = hub.break_after - hub.sent_weights
                if allowed > left:
                    allowed = left
                    hub.break_after = None
                    self.close_connection = True
            hub.sent += allowed
            if weights:
                hub.sent_weights += allowed
        try:
            self.wfile.write(body[:allowed])
        except ConnectionError:  # the client closed the connection early
            self.close_connection = True
        return len(body)


@contextlib.contextmanager
def serving(root: Path, caches: Path, patch) -> Iterator[HubServer]:
    """Serve a folder's repositories in place of the real hub, with empty caches."""
    with HubServer(root) as server:
        point_at(server.url, patch)
        patch.setattr(constants, "HF_HUB_CACHE", str(caches / "hub"))
        patch.setattr(paths, "CACHE", caches / "cache")
        yield server


def point_at(url: str, patch) -> None:
    """Make this process use the hub at a URL; setting HF_ENDPOINT would come too late,
    because huggingface_hub reads it on import.
    """
    patch.setattr(constants, "ENDPOINT", url)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


def etag(path: Path) -> str:
    return f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}".encode().hex()
