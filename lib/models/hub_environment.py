"""Check the environment variables that a connection to the hub uses."""

import importlib.util
import os
import ssl
import urllib.request


def unusable_variable() -> str | None:
    """Return in one line which environment variable prevents a connection to the hub: a
    proxy, a file of certificates or a token; None if there is none.
    """
    certificates = os.environ.get("SSL_CERT_FILE") or None
    try:
        ssl.create_default_context(cafile=certificates)
    except OSError:
        return f"SSL_CERT_FILE is {certificates}, no file of certificates: unset it"
    known = ["http", "https"]
    if importlib.util.find_spec("socksio"):
        known += ["socks5", "socks5h"]
    proxies = urllib.request.getproxies_environment()
    for kind in ("all", "https", "http"):
        kind_of_proxy, separator, _ = proxies.get(kind, "").partition("://")
        if separator and kind_of_proxy not in known:
            return (
                f"{kind.upper()}_PROXY is {proxies[kind]}: give a proxy of"
                f" {' or '.join(known)}, or unset it"
            )
    if not os.environ.get("HF_TOKEN", "").isascii():
        return "HF_TOKEN has a letter that no token has: copy it once more, or unset it"
    return None
