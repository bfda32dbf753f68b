"""Long runs that survive: results in numbered parts, each there whole or not at all, and a manifest beside them."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from .files import atomic_write

try:
    import fcntl
except ImportError:  # no POSIX system: two runs of one output are not kept apart
    fcntl = None

MANIFEST = "manifest.json"
LOCK = "lock"


class ResumeError(ValueError):
    """A run cannot begin or go on here. The message says why, and what to type."""


class Shards:
    """The parts of one output file, in the folder OUTPUT.parts until they are merged into OUTPUT.

    output (Path): The file asked for. Its manifest, OUTPUT.manifest.json, is written with it.
    resume (bool): Go on with what is there.
    force (bool): Take away what is there.
    RAISES (ResumeError): There is something that would be lost.
    """

    def __init__(self, output: Path, resume: bool = False, force: bool = False):
        self.output = output
        self.folder = output.with_name(output.name + ".parts")
        self.final_manifest = output.with_name(output.name + "." + MANIFEST)
        self.resume, self.force = resume, force
        if self.folder.exists() and not (resume or force):
            raise ResumeError(
                f"{self.folder} holds an unfinished run. Continue it with --resume, or begin anew with --force."
            )
        if output.exists() and not (resume or force):
            raise ResumeError(f"{output} exists. Replace it with --force, or choose another name.")

    def begin(self, manifest: dict) -> int:
        """Make ready, and say how many parts are there already; -1 when all is done and merged.

        manifest (dict): What decides the results: input, settings, versions. Plain JSON values.
        RAISES (ResumeError): An earlier run, which this one is to continue, differs from it, or is still at work.
        """
        self.manifest = json.loads(json.dumps(manifest))  # as it will read back
        unfinished = self.folder.exists()
        if self.resume and not unfinished and self.output.exists():
            self._check_same(_read(self.final_manifest))
            return -1
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock()
        if self.resume and unfinished:
            return self._go_on()
        for path in self.folder.iterdir():
            if path.name != LOCK:
                path.unlink()
        self._write_manifest(self.folder / MANIFEST)
        return 0

    def _lock(self):
        """Hold the folder until all is merged, or this process ends, in whatever way.

        Worker processes do not inherit the lock: one that outlives a killed parent does not keep it.
        """
        self.lock = open(self.folder / LOCK, "a+", encoding="utf8")
        try:
            if fcntl:
                fcntl.lockf(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            self.lock.seek(0)
            raise ResumeError(
                f"Another process, {self.lock.read() or 'just begun'}, is writing {self.output}. Wait until it has "
                "ended, or stop it and go on with --resume; or choose another name."
            ) from None
        self.lock.truncate(0)
        self.lock.write(str(os.getpid()))
        self.lock.flush()

    def _go_on(self) -> int:
        path = self.folder / MANIFEST
        if not path.exists():  # stopped before anything was scored
            self._write_manifest(path)
        self._check_same(_read(path))
        done = 0
        while self._part(done).exists():
            done += 1
        return done

    def _check_same(self, earlier: dict):
        before, now = dict(_flat(earlier)), dict(_flat(self.manifest))
        changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
        if changed:
            lines = [f"{key}: it was {before.get(key)!r}, and is {now.get(key)!r}" for key in changed]
            raise ResumeError(
                f"The run cannot go on as it began: {'; '.join(lines)}. Set it back, or begin anew with --force."
            )

    def _part(self, number: int) -> Path:
        return self.folder / f"{number:06}{self.output.suffix}"

    def write(self, number: int, blocks: Iterable[bytes]):
        """Write one part.

        RAISES (OSError): The disk is full, say. The parts before this one are kept.
        """
        self._write(self._part(number), blocks)

    def merge(self, join, count: int):
        """Join the parts to the file asked for, leave the manifest beside it, and take the parts away.

        join (Callable[[Iterable[bytes]], Iterable[bytes]]): The format's way of joining. It may go through the
            parts more than once; they are read anew each time.
        count (int): How many parts there are.
        """
        self._write(self.output, join(_Files([self._part(number) for number in range(count)])))
        self._write_manifest(self.final_manifest)
        shutil.rmtree(self.folder)
        self.lock.close()

    def _write(self, path: Path, blocks: Iterable[bytes]):
        try:
            with atomic_write(path) as file:
                for block in blocks:
                    file.write(block)
        except OSError as error:
            raise OSError(
                f"{path} cannot be written: {error.strerror or error}. What was scored before it is kept in "
                f"{self.folder}. Make room, then give the same command with --resume."
            ) from error

    def _write_manifest(self, path: Path):
        with atomic_write(path) as file:
            file.write((json.dumps(self.manifest, indent=2, ensure_ascii=False) + "\n").encode("utf8"))


class _Files:
    """The contents of files, one in memory at a time."""

    def __init__(self, paths: list[Path]):
        self.paths = paths

    def __iter__(self) -> Iterator[bytes]:
        return (path.read_bytes() for path in self.paths)


def _read(path: Path) -> dict:
    try:
        return json.loads(path.read_text(encoding="utf8"))
    except FileNotFoundError:
        raise ResumeError(f"{path} is not there, so what was done cannot be known. Begin anew with --force.") from None
    except ValueError as error:
        raise ResumeError(f"{path} is damaged ({error}). Begin anew with --force.") from None


def _flat(value, prefix: str = "") -> Iterator[tuple[str, object]]:
    """The leaves of nested dicts, under dotted names."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{prefix}.{key}" if prefix else key)
    else:
        yield prefix, value
