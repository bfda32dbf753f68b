"""Runs that can be resumed: results go to part files, each written atomically, with a manifest of the run."""

import json
import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from .compression import through_compression
from .files import atomic_write, write_json
from .readers import format_of

try:
    import fcntl
except ImportError:  # not a POSIX system: two runs that write the same output are not detected
    CAN_LOCK = False
else:
    CAN_LOCK = True

MANIFEST = "manifest.json"
LOCK = "lock"
# What a folder of parts contains. The name of a part says which texts it has: from the first to before the second.
PART = re.compile(r"(\d{9,})-(\d{9,})\.\w+")
OURS = re.compile(rf"{MANIFEST}|{LOCK}|{PART.pattern}|.*\.unfinished")
MAX_NAMED = 5  # how many differences between two runs an error names
MAX_CHARACTERS = 100  # of a value in it


class ResumeError(ValueError):
    """A run cannot start or resume. The message says why, and which option to use."""


class ResumableOutput:
    """The parts of one output file, in the folder OUTPUT.parts until they are joined to OUTPUT.

    resume (bool): Continue with the parts that exist.
    force (bool): Replace existing parts and output.
    RAISES (ResumeError): There are results that would be lost, or another run writes this output.
    """

    def __init__(self, output: Path, resume: bool = False, force: bool = False):
        self.output = output
        self.folder = output.with_name(output.name + ".parts")
        self.final_manifest = output.with_name(output.name + "." + MANIFEST)
        self.resume = resume
        self.lock: IO[str] | None = None
        if self.folder.exists():
            self._check_ours()
            self._lock()
            if not (resume or force):
                raise ResumeError(
                    f"{self.folder} contains an unfinished run. Continue it with --resume, or start again with --force."
                )
        if output.exists() and not (resume or force):
            raise ResumeError(f"{output} exists. Replace it with --force, or choose another name.")

    def _check_ours(self) -> None:
        names = {path.name for path in self.folder.iterdir()}
        foreign = sorted(name for name in names if not OURS.fullmatch(name))
        if MANIFEST not in names:
            foreign = sorted(names - {LOCK, f"{MANIFEST}.unfinished"})
        if foreign or self.folder.is_symlink():
            what = f"contains {foreign[0]!r}, which is not of a run" if foreign else "is a link"
            raise ResumeError(
                f"{self.folder} {what}. Unfinished results would go there, and it would be removed at the end. Give "
                "OUTPUT another name, or move that folder."
            )

    def begin(self, manifest: dict[str, Any]) -> int | None:
        """Make the folder ready for parts, and say how many texts are done already; None if the output is complete.

        manifest (dict): What the results depend on.
        RAISES (ResumeError): The run to resume differs from this one, or is still running.
        """
        self.manifest = json.loads(json.dumps(manifest))  # as it will be read back
        unfinished = self.folder.exists()
        if self.resume and not unfinished and self.output.exists():
            self._check_same(_read(self.final_manifest))
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.lock:
            self._lock()
        path = self.folder / MANIFEST
        if self.resume and path.exists():
            self._check_same(_read(path))
        else:
            self._empty()
            write_json(path, self.manifest)
        return self.done

    def _lock(self) -> None:
        """Until all parts are joined or this process ends, for whatever reason. Worker processes do not inherit it."""
        self.lock = open(self.folder / LOCK, "a+", encoding="utf8")
        try:
            if CAN_LOCK:
                fcntl.lockf(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            self.lock.seek(0)
            raise ResumeError(
                f"Another run ({self.lock.read() or 'just started'}) is writing {self.output}. Wait until it has "
                "ended, or stop it and continue with --resume; or choose another name."
            ) from None
        self.lock.truncate(0)
        self.lock.write(f"process {os.getpid()} on {socket.gethostname()}, since {datetime.now():%Y-%m-%d %H:%M}")
        self.lock.flush()

    def _empty(self) -> None:
        for path in self.folder.iterdir():
            if path.name != LOCK and OURS.fullmatch(path.name):
                path.unlink()

    @property
    def done(self) -> int:
        """How many texts are done, from the first on."""
        return self._parts()[-1][1] if self._parts() else 0

    def _parts(self) -> list[tuple[Path, int]]:
        """The parts from the first text on without a gap, each with the number of texts up to its end."""
        found: list[tuple[Path, int]] = []
        for path in sorted(self.folder.iterdir()):
            match = PART.fullmatch(path.name)
            if match and int(match[1]) == (found[-1][1] if found else 0):
                found.append((path, int(match[2])))
        return found

    def _check_same(self, earlier: dict[str, Any]) -> None:
        changed = list(_differences(earlier, self.manifest))
        if changed:
            more = f"; and {len(changed) - MAX_NAMED} more" if len(changed) > MAX_NAMED else ""
            raise ResumeError(
                "The run cannot be resumed, because this has changed, and the results depend on it: "
                f"{'; '.join(changed[:MAX_NAMED])}{more}. Change it back, or start again with --force."
            )

    def write(self, part: bytes, n_texts: int) -> None:
        """Write the next part."""
        first = self.done
        self._write(self.folder / f"{first:09}-{first + n_texts:09}{format_of(self.output)}", [part])

    @contextmanager
    def kept(self, total: int) -> Iterator[None]:
        """If the run stops in this context, for whatever reason, the error gets a note that says what is kept."""
        try:
            yield
        except BaseException as error:
            note = f"The scores of {self.done:,} of {total:,} texts are kept in {self.folder}. Go on with --resume."
            vars(error).setdefault("__notes__", []).append(note)  # the `add_note` of Python 3.11
            raise

    def merge(self, join: Callable[[Iterable[bytes]], Iterable[bytes]]) -> None:
        """Join the parts to the output file as its format needs it, write its manifest, and delete the parts."""
        self._write(self.output, join(path.read_bytes() for path, _ in self._parts()))
        write_json(self.final_manifest, self.manifest)
        self._empty()
        if self.lock:
            self.lock.close()
        (self.folder / LOCK).unlink()
        with suppress(OSError):  # it contains what others have put there
            self.folder.rmdir()

    def _write(self, path: Path, blocks: Iterable[bytes]) -> None:
        with atomic_write(path) as file, through_compression(file, path, "wb") as contents:
            for block in blocks:
                contents.write(block)


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf8"))
    except FileNotFoundError:
        raise ResumeError(
            f"{path} does not exist, so it is unknown what was scored. Start again with --force."
        ) from None
    except ValueError as error:
        raise ResumeError(f"{path} is damaged ({error}). Start again with --force.") from None


def _differences(before: object, now: object, name: str = "") -> Iterator[str]:
    """What differs between two manifests, under dotted names. What only one of them has is named as a whole."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**before, **now}:
            yield from _differences(before.get(key), now.get(key), f"{name}.{key}" if name else key)
    elif before != now:
        shown = [repr(value) for value in (before, now)]
        if len({text[:MAX_CHARACTERS] for text in shown}) == 2:  # otherwise the end is what differs
            shown = [text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}..." for text in shown]
        yield f"{name}: it was {shown[0]}, and is now {shown[1]}"
