"""Runs that can be resumed: results go to part files, each written atomically, with a manifest of the run.

A run may be stopped before or after any of its file operations. So their order matters, and what a folder contains says
what was done:

- A manifest beside OUTPUT says that OUTPUT is complete. It is deleted before anything else changes, and written last.
- Parts that count are a chain from the first text on. They are deleted from the last one to the first, then their
  manifest, so what remains at any moment is such a chain, or nothing.
"""

import errno
import gc
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from ..compression import format_of, through_compression
from ..errors import ResumeError
from ..files import MANIFEST, OUTPUTS, REPLACE, atomic_write, write_json
from ..user_warnings import warn_user

LOCK = "lock"
# What a folder of parts contains. The name of a part says which texts it has, from the first number to before the
# second, the fingerprint of all that was read until then (`corpus.inputs.Input.records`), and how many seconds it took.
PART = re.compile(r"(\d{9,})-(\d{9,})-([0-9a-f]+)-(\d+)s\.\w+")
OURS = re.compile(rf"{MANIFEST}|{LOCK}|{PART.pattern}|.*\.unfinished")
# What systems put into folders: macOS, Windows, and NFS for files that were deleted while they were open.
OF_SYSTEMS = re.compile(r"\.DS_Store|\._.*|Thumbs\.db|desktop\.ini|\.nfs.*", re.IGNORECASE)
# What a lock raises on a file system without locks, as some network file systems are.
WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
# Where a manifest has the fingerprint of all texts. It says nothing to people.
DIGEST = "input.digest"
MAX_NAMED = 5  # how many differences between two runs an error names
SHOWN_CHARACTERS = 100  # of a value in it


@contextmanager
def frozen_objects() -> Iterator[None]:
    """The garbage collector leaves alone what is there. Every 10,000 texts or so, it would look through all of PyTorch,
    which is a tenth of the time of a short text on a GPU. If a program has done this already, it stays so.
    """
    is_ours = gc.get_freeze_count() == 0
    if is_ours:
        gc.freeze()
    try:
        yield
    finally:
        if is_ours:
            gc.unfreeze()


class ResumableOutput:
    """The parts of one output file, in the folder OUTPUT.parts until they are joined to OUTPUT.

    resume, force (bool): Continue with the parts that exist, or replace these and the output.
    RAISES (ResumeError): There are results that would be lost, or another run writes this output.
    """

    def __init__(self, output: Path, resume: bool = False, force: bool = False):
        self.output = output
        self.folder = output.with_name(output.name + ".parts")
        self.final_manifest = output.with_name(output.name + "." + MANIFEST)
        self.resume, self.force = resume, force
        self.lock: IO[str] | None = None
        self.manifest: dict[str, Any] = {}  # of this run, from `begin` on
        self.done, self.fingerprint = 0, ""  # how many texts are done, from the first on, and which they are
        self.seconds = 0  # how long these took, in all runs
        self.complete = False  # whether the output is
        self._since = time.monotonic()
        if self.folder.exists():
            self._check_ours()
            self._lock()
            names = {path.name for path in self.folder.iterdir()} - {LOCK}
            is_run = not names or not all(map(OF_SYSTEMS.fullmatch, names))
            if is_run and not (resume or force):
                raise ResumeError(
                    f"{self.folder} contains an unfinished run.",
                    "Continue it with `resume=True`, or start again with `force=True`.",
                )
        if output.exists() and not (resume or force):
            raise ResumeError(f"{output} exists already.", REPLACE)

    def _check_ours(self) -> None:
        names = {path.name for path in self.folder.iterdir() if not OF_SYSTEMS.fullmatch(path.name)}
        foreign = sorted(name for name in names if not OURS.fullmatch(name))
        if MANIFEST not in names:
            foreign = sorted(names - {LOCK, f"{MANIFEST}.unfinished"})
        if foreign or self.folder.is_symlink():
            what = f"contains {foreign[0]!r}, which is not of a run" if foreign else "is a link"
            raise ResumeError(
                f"{self.folder} {what}. Unfinished results would go there, and it would be removed at the end.",
                "Give the output another name, or move that folder.",
            )

    def ends(self) -> set[int]:
        """The numbers of texts after which parts end: what was read until there is compared by `begin`."""
        return {int(match[2]) for _, match in self._found()}

    def begin(self, manifest: dict[str, Any], fingerprints: Mapping[int, str] = {}) -> int | None:
        """Make the folder ready for parts, and say how many texts are done already; None if the output is complete.

        manifest (dict): What the results depend on.
        fingerprints (Mapping[int, str]): Of the input, after so many texts. Parts of other texts are deleted.
        RAISES (ResumeError): The run to resume differs from this one, or is still running.
        """
        self.manifest = json.loads(json.dumps(manifest))  # as it will be read back
        path = self.folder / MANIFEST
        started = self.resume and path.exists()
        if started:
            self._check_same(_read(path), fingerprints)
        if self.resume and self.output.exists() and (self.final_manifest.exists() or not self.folder.exists()):
            earlier = _read(self.final_manifest)
            if not started:
                self._check_same(earlier, fingerprints)
            files = self.manifest.get(OUTPUTS, {}).get("files", ())
            if earlier == self.manifest and all((self.output.parent / file).exists() for file in files):
                self.discard()
                return None
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.lock:
            self._lock()
            if self.output.exists() and not (self.resume or self.force):
                self._leave()
                raise ResumeError(
                    f"Another run has written {self.output} since this one began.",
                    REPLACE,
                )
        self.final_manifest.unlink(missing_ok=True)
        if not started:
            self._empty()
            write_json(path, self.manifest)
        others = list[Path]()
        for part, match in self._found():
            if int(match[1]) == self.done and fingerprints.get(int(match[2])) == match[3]:
                self.done, self.fingerprint, self.seconds = int(match[2]), match[3], self.seconds + int(match[4])
            else:
                others.append(part)
        for part in reversed(others):
            part.unlink()
        return self.done

    def _lock(self) -> None:
        """Until all parts are joined or this process ends, for whatever reason. Worker processes do not inherit it."""
        self.lock = open(self.folder / LOCK, "a+", encoding="utf8")
        try:
            with suppress(ImportError):  # not a POSIX system: two runs that write the same output are not detected
                import fcntl

                fcntl.lockf(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in WITHOUT_LOCKS:
                warn_user(
                    f"The file system of {self.folder} has no locks, so two runs that write {self.output} at the same "
                    "time would not notice each other. Start only one."
                )
                return
            if not isinstance(error, BlockingIOError | PermissionError):
                raise
            self.lock.seek(0)
            raise ResumeError(
                f"Another run ({self.lock.read() or 'just started'}) is writing {self.output}.",
                "Wait until it has ended, or stop it and continue with `resume=True`; or give another name.",
            ) from None
        self.lock.truncate(0)
        self.lock.write(f"process {os.getpid()} on {socket.gethostname()}, since {datetime.now():%Y-%m-%d %H:%M}")
        self.lock.flush()

    def _found(self) -> list[tuple[Path, re.Match[str]]]:
        """The parts in the folder, in the order of their texts."""
        paths = list(self.folder.iterdir()) if self.folder.exists() else []
        parts = [(path, match) for path in paths if (match := PART.fullmatch(path.name))]
        return sorted(parts, key=lambda part: (int(part[1][1]), int(part[1][2])))

    def _empty(self) -> None:
        """Delete all but the lock, in the order in which what remains is right."""
        parts = [path for path, _ in reversed(self._found())]
        others = [path for path in self.folder.iterdir() if path not in parts and OURS.fullmatch(path.name)]
        for path in [*parts, *sorted(others, key=lambda path: path.name == MANIFEST)]:
            if path.name != LOCK:
                path.unlink()

    def discard(self) -> None:
        """Remove the folder, unless it contains what others have put there: what was made of the parts is written."""
        self.complete = True
        if self.folder.exists():
            self._empty()
            self._leave()

    def _leave(self) -> None:
        """Remove the lock, and the folder if nothing else is in it."""
        if self.lock:
            self.lock.close()
        (self.folder / LOCK).unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def finish(self) -> None:
        """Say that all outputs of a run are written, and delete the parts."""
        write_json(self.final_manifest, self.manifest)
        self.discard()

    def _check_same(self, earlier: dict[str, Any], fingerprints: Mapping[int, str]) -> None:
        changed = list(_differences({**earlier, OUTPUTS: self.manifest.get(OUTPUTS)}, self.manifest))
        if changed:
            changed = [
                self._where(fingerprints) if difference.startswith(DIGEST) else difference for difference in changed
            ]
            more = f"; and {len(changed) - MAX_NAMED} more" if len(changed) > MAX_NAMED else ""
            raise ResumeError(
                "The run cannot be resumed, because this has changed, and the results depend on it: "
                f"{'; '.join(changed[:MAX_NAMED])}{more}.",
                "Change it back, or start again with `force=True`.",
            )

    def _where(self, fingerprints: Mapping[int, str]) -> str:
        """Which texts of the input are others than at first, as far as the parts tell."""
        what, same = "texts of the input or their columns", 0
        for _, match in self._found():
            if fingerprints.get(int(match[2])) != match[3]:
                return f"{what}, first between its texts {same + 1:,} and {int(match[2]):,}"
            same = int(match[2])
        return what + (f" (the {same:,} that are scored are the same)" if same else "")

    def write(self, part: bytes, n_texts: int, fingerprint: str) -> None:
        """Write the next part. fingerprint (str): Of all that was read, up to the last text of the part."""
        end, now = self.done + n_texts, time.monotonic()
        seconds = round(now - self._since)
        name = f"{self.done:09}-{end:09}-{fingerprint}-{seconds}s{format_of(self.output)}"
        self._write(self.folder / name, [part])
        self.done, self.fingerprint, self.seconds, self._since = end, fingerprint, self.seconds + seconds, now

    def read(self) -> bytes:
        """What the parts have, in their order."""
        return b"".join(path.read_bytes() for path in self._whole())

    def _whole(self) -> list[Path]:
        """The parts, in their order. RAISES (ResumeError): Somebody has deleted one, as programs that clean up do."""
        parts = self._found()
        ends = [0, *(int(match[2]) for _, match in parts)]
        if ends[-1] != self.done or [int(match[1]) for _, match in parts] != ends[:-1]:
            raise ResumeError(
                f"Parts of the run are missing in {self.folder}: they were deleted while it was running.",
                "Score what is missing with `resume=True`.",
            )
        return [path for path, _ in parts]

    @contextmanager
    def kept(self, total: int, unit: str = "texts") -> Iterator[None]:
        """If the run stops in this context, for whatever reason, the error gets a note that says what is kept."""
        try:
            with frozen_objects():
                yield
        except BaseException as error:
            note = f"The scores of {self.done:,} of {total:,} {unit} are kept in {self.folder}. Go on with"
            if self.complete:
                note = f"{self.output} is complete. What is left of {self.folder} is not needed. It is removed with"
            note += " `resume=True`."
            vars(error).setdefault("__notes__", []).append(note)  # the `add_note` of Python 3.11
            raise

    def merge(self, join: Callable[[Iterable[bytes]], Iterable[bytes]]) -> None:
        """Join the parts to the output file as its format needs it, write its manifest, and delete the parts."""
        self._write(self.output, join(path.read_bytes() for path in self._whole()))
        self.finish()

    def _write(self, path: Path, blocks: Iterable[bytes]) -> None:
        with atomic_write(path) as file, through_compression(file, path, "wb") as contents:
            for block in blocks:
                contents.write(block)


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf8"))
    except FileNotFoundError:
        raise ResumeError(
            f"{path} does not exist, so it is unknown what was scored.", "Start again with `force=True`."
        ) from None
    except ValueError as error:
        raise ResumeError(f"{path} is damaged ({error}).", "Start again with `force=True`.") from None


def _differences(before: object, now: object, name: str = "") -> Iterator[str]:
    """What differs between two manifests, under dotted names. What only one of them has is named as a whole."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**before, **now}:
            yield from _differences(before.get(key), now.get(key), f"{name}.{key}" if name else key)
    elif before != now:
        shown = [repr(value) for value in (before, now)]
        if len({text[:SHOWN_CHARACTERS] for text in shown}) == 2:  # otherwise the end is what differs
            shown = [text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..." for text in shown]
        yield f"{name}: it was {shown[0]}, and is now {shown[1]}"
