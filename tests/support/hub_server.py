"""A stand-in for the model hub: serves folders under real ids, counts what it sends,
misbehaves on demand.

As on the real hub, weights lie on another host, to which a request is redirected.
"""

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from huggingface_hub import constants

REPO = r"(?P<repo>[^/]+/[^/]+)"
API = re.compile(rf"/api/models/{REPO}(/(?P<what>revision|tree)/(?P<revision>[^/]+))?")
FILE = re.compile(
    rf"(?P<stored>/storage)?/{REPO}/resolve/(?P<revision>[^/]+)/(?P<file>.+)"
)
RANGE = re.compile(r"bytes=(\d+)-(\d+)")
PORTION = 1 << 16  # bytes


class HubServer(ThreadingHTTPServer):
    """Serves root/Qwen/Qwen2.5-Math-7B and the like on 127.0.0.1 from a thread, as long
    as the block lasts.

    Switches: `gated` (repository -> 401 or 403 for its files), `lost` (commits that are
    no longer there), `ignore_range` (200 and the whole file), and `break_after` (cut
    the connection once, when so many bytes of weights have been sent). Counts: `sent`
    and `sent_weights` in bytes, `ranged` requests for a part of a file.
    """

    daemon_threads = True

    def __init__(self, root: Path):
        super().__init__(("127.0.0.1", 0), Handler)
        self.root, self.url, self.lock = (
            root,
            f"http://127.0.0.1:{self.server_port}",
            threading.Lock(),
        )
        self.gated, self.lost, self.ignore_range, self.break_after = (
            {},
            set(),
            False,
            None,
        )
        self.sent = self.sent_weights = self.ranged = 0
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def __exit__(self, *given) -> None:
        self.shutdown()
        super().__exit__(*given)

    def commit(self, repo: str) -> str:
        """Return the one commit of a repository: it changes with the names and sizes of
        the files.
        """
        return hashlib.sha1(
            repr((repo, sorted(self.files(repo).items()))).encode()
        ).hexdigest()

    def files(self, repo: str) -> dict[str, int]:
        """Return the sizes of a repository's files by name."""
        paths = [path for path in (self.root / repo).rglob("*") if path.is_file()]
        return {
            path.relative_to(self.root / repo).as_posix(): path.stat().st_size
            for path in paths
        }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Status line, headers and body arrive in several writes; without this each waits
    # for an acknowledgement.
    disable_nagle_algorithm = True
    server: HubServer

    def do_GET(self) -> None:
        path, hub = unquote(urlsplit(self.path).path), self.server
        if not (match := API.fullmatch(path) or FILE.fullmatch(path)):
            return self.refuse(404, "EntryNotFound")
        repo, commit = match["repo"], match["revision"] or "main"
        if not (hub.root / repo).is_dir():
            return self.refuse(404, "RepoNotFound")
        if commit in hub.lost or not re.fullmatch("main|[0-9a-f]{40}", commit):
            return self.refuse(404, "RevisionNotFound")
        commit = hub.commit(repo) if commit == "main" else commit
        if match.re is FILE:
            return self.send_file(
                repo, commit, hub.root / repo / match["file"], bool(match["stored"])
            )
        sizes = hub.files(repo).items()
        files = [
            {"type": "file", "rfilename": name, "path": name, "size": size, "oid": name}
            for name, size in sizes
        ]
        content = (
            files
            if match["what"] == "tree"
            else {"id": repo, "sha": commit, "siblings": files}
        )
        body = json.dumps(content).encode()
        self.answer(200, len(body), {"Content-Type": "application/json"})
        self.send_body(body)

    do_HEAD = do_GET

    def log_message(self, *_) -> None:
        pass

    def refuse(self, status: int, code: str, **headers: str) -> None:
        self.answer(
            status, 0, {"X-Error-Code": code, "X-Error-Message": code, **headers}
        )

    def answer(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()

    def send_file(self, repo: str, commit: str, path: Path, stored: bool) -> None:
        hub, headers = self.server, {"X-Repo-Commit": commit}
        if repo in hub.gated:
            return self.refuse(hub.gated[repo], "GatedRepo")
        if not path.is_file():
            return self.refuse(404, "EntryNotFound", **headers)
        size, weights, tag = (
            path.stat().st_size,
            path.suffix == ".safetensors",
            f'"{etag(path)}"',
        )
        if weights and not stored:
            place = f"http://localhost:{hub.server_port}/storage{self.path}"
            return self.answer(
                302,
                0,
                headers
                | {"X-Linked-Size": str(size), "X-Linked-ETag": tag, "Location": place},
            )
        headers |= {"ETag": tag, "Accept-Ranges": "bytes"}
        start, stop, asked = 0, size, RANGE.fullmatch(self.headers.get("Range", ""))
        if asked and not hub.ignore_range:
            hub.ranged += 1
            start, stop = int(asked[1]), min(int(asked[2]) + 1, size)
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        self.answer(206 if "Content-Range" in headers else 200, stop - start, headers)
        with open(path, "rb") as stream:
            stream.seek(start)
            while start < stop and not self.close_connection:
                start += self.send_body(
                    stream.read(min(PORTION, stop - start)), weights
                )

    def send_body(self, body: bytes, weights: bool = False) -> int:
        """Send so much of it as may go out before the connection is cut; return its
        whole length.
        """
        hub, allowed = self.server, len(body)
        if self.command == "HEAD":
            return allowed
        with hub.lock:
            if (
                weights
                and hub.break_after is not None
                and hub.sent_weights + allowed > hub.break_after
            ):
                allowed, hub.break_after = hub.break_after - hub.sent_weights, None
                self.close_connection = True
            hub.sent_weights += allowed * weights
            hub.sent += allowed
        try:
            self.wfile.write(body[:allowed])
        except ConnectionError:  # a reader that has seen enough hangs up
            self.close_connection = True
        return len(body)


def point_at(url: str, patch) -> None:
    """Let a hub at this address take the real one's place in this process, which read
    HF_ENDPOINT long ago.
    """
    patch.setattr(constants, "ENDPOINT", url)
    patch.setattr(
        constants,
        "HUGGINGFACE_CO_URL_TEMPLATE",
        url + "/{repo_id}/resolve/{revision}/{filename}",
    )


def etag(path: Path) -> str:
    return f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}".encode().hex()
