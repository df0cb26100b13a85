"""Where MLflow's data lie, decided from study, environment and store; and said without secrets."""

import os
import re
from pathlib import Path
from urllib.parse import urlsplit


class TrackingError(ValueError):
    """The tracking URI cannot be used; says why and what to write instead."""


def tracking_uri(store: str, uri: str = "") -> str:
    """Decide where MLflow's data lie: the study's word, else the variable, else the store.

    Args:
        store: Root of the result store, a path or a URI.
        uri: `[tracking] uri` of the study; may be empty.

    Returns:
        A tracking URI; `sqlite:///<store>/mlflow.db` by default (in the current folder where
        the store is remote).

    Raises:
        TrackingError: a folder is named, which means MLflow's file store; it is slow, and
            MLflow itself gave it up.
    """
    name, value = "tracking.uri", uri
    if not value and os.environ.get("MLFLOW_TRACKING_URI"):
        name, value = "MLFLOW_TRACKING_URI", os.environ["MLFLOW_TRACKING_URI"]
    if not value:
        return f"sqlite:///{local_folder(store) / 'mlflow.db'}"
    scheme = urlsplit(value).scheme
    if scheme in ("", "file"):
        raise TrackingError(
            f"{name} = {without_secret(value)!r}: a folder is MLflow's file store, which is not "
            f"supported. Write sqlite:///{Path(urlsplit(value).path) / 'mlflow.db'}, the address "
            f"of a server (http://127.0.0.1:5000), or leave it out for the store's own database."
        )
    return value


def local_folder(store: str) -> Path:
    """The store's folder; the current one where the store is not on this machine."""
    is_remote = urlsplit(store).scheme not in ("", "file")
    return Path("." if is_remote else urlsplit(store).path).resolve()


def without_secret(uri: str) -> str:
    """The URI as it may be shown: without its password."""
    return re.sub(r"//([^/@:]*):[^@/]*@", r"//\1:***@", uri)


_HALF_MADE = "already exists", "no such table", "Can't locate revision", "malformed"
"""What is said of a file whose tables MLflow was kept from making: a full disk, a kill."""


def way_out(uri: str, error: Exception) -> str:
    """What mends an error of MLflow's, in a sentence."""
    if not uri.startswith("sqlite:"):
        return "Is the server up?"
    file = uri.removeprefix("sqlite:///").partition("?")[0]
    if any(text in str(error) for text in _HALF_MADE):
        return (
            f"MLflow was interrupted while it made this database and cannot go on with it: move "
            f"{file} away. What it showed of this store is made anew."
        )
    if "disk is full" in str(error):
        return f"Make room where {file} lies."
    return f"Can {file} be written?"


_PLAIN = {  # what stands at the end of three hundred letters about connection pools
    "Connection refused": "connection refused",
    "NameResolutionError": "no host of that name is known",
    "Read timed out": "no answer in time",
    "ConnectTimeoutError": "no answer in time",
}


def reason(error: Exception, uri: str) -> str:
    """An error's last line of substance, without the password of `uri`."""
    text = " ".join(str(error).split()) or type(error).__name__
    password = urlsplit(uri).password
    text = text.replace(password, "***") if password else text
    for sign, plain in _PLAIN.items():
        if sign in text:
            return plain
    return f"{text[:300]}..." if len(text) > 300 else text  # noqa: PLR2004 - one screen line or three
