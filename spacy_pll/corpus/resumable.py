"""Runs that can be resumed: results go to numbered part files, each written atomically, with a manifest of the run."""

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

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


class ResumeError(ValueError):
    """A run cannot start or resume. The message says why, and which option to use."""


class ResumableOutput:
    """The parts of one output file, in the folder OUTPUT.parts until they are joined to OUTPUT.

    output (Path): The output file. Its manifest is OUTPUT.manifest.json.
    resume (bool): Continue with the parts that exist.
    force (bool): Replace existing parts and output.
    RAISES (ResumeError): There are results that would be lost.
    """

    def __init__(self, output: Path, resume: bool = False, force: bool = False):
        self.output = output
        self.folder = output.with_name(output.name + ".parts")
        self.final_manifest = output.with_name(output.name + "." + MANIFEST)
        self.resume, self.force = resume, force
        if self.folder.exists() and not (resume or force):
            raise ResumeError(
                f"{self.folder} contains an unfinished run. Continue it with --resume, or start again with --force."
            )
        if output.exists() and not (resume or force):
            raise ResumeError(f"{output} exists. Replace it with --force, or choose another name.")

    def begin(self, manifest: dict) -> int | None:
        """Make the folder ready for parts.

        manifest (dict): What the results depend on: input, settings, versions. Plain JSON values.
        RETURNS (Optional[int]): How many parts are done already; None if the output is complete.
        RAISES (ResumeError): The run to resume differs from this one, or is still running.
        """
        self.manifest = json.loads(json.dumps(manifest))  # as it will be read back
        unfinished = self.folder.exists()
        if self.resume and not unfinished and self.output.exists():
            self._check_same(_read(self.final_manifest))
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock()
        if self.resume and unfinished:
            return self._count_done()
        for path in self.folder.iterdir():
            if path.name != LOCK:
                path.unlink()
        write_json(self.folder / MANIFEST, self.manifest)
        return 0

    def _lock(self):
        """Lock the folder until all parts are joined or this process ends, for whatever reason.

        Worker processes do not inherit the lock, so one that outlives a killed parent does not hold it.
        """
        self.lock = open(self.folder / LOCK, "a+", encoding="utf8")
        try:
            if CAN_LOCK:
                fcntl.lockf(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            self.lock.seek(0)
            raise ResumeError(
                f"Another process, {self.lock.read() or 'just started'}, is writing {self.output}. Wait until it has "
                "ended, or stop it and continue with --resume; or choose another name."
            ) from None
        self.lock.truncate(0)
        self.lock.write(str(os.getpid()))
        self.lock.flush()

    def _count_done(self) -> int:
        path = self.folder / MANIFEST
        if not path.exists():  # stopped before anything was scored
            write_json(path, self.manifest)
        self._check_same(_read(path))
        done = 0
        while self._part(done).exists():
            done += 1
        return done

    def _check_same(self, earlier: dict):
        before, now = dict(_flat(earlier)), dict(_flat(self.manifest))
        changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
        if changed:
            lines = [f"{key}: it was {before.get(key)!r}, and is now {now.get(key)!r}" for key in changed]
            raise ResumeError(
                "The run cannot be resumed, because this has changed, and the scores depend on it: "
                f"{'; '.join(lines)}. Change it back, or start again with --force."
            )

    def _part(self, number: int) -> Path:
        return self.folder / f"{number:06}{format_of(self.output)}"

    def write(self, number: int, blocks: Iterable[bytes]):
        """Write one part.

        RAISES (OSError): It cannot be written, for example because the disk is full. Earlier parts are kept.
        """
        self._write(self._part(number), blocks)

    def merge(self, join: Callable[[Iterable[bytes]], Iterable[bytes]], count: int):
        """Join the parts to the output file, write its manifest, and delete the parts.

        join (Callable[[Iterable[bytes]], Iterable[bytes]]): Joins the parts, as the output format needs it. It may
            iterate over the parts more than once. Each time they are read again.
        count (int): How many parts there are.
        """
        self._write(self.output, join(_Files([self._part(number) for number in range(count)])))
        write_json(self.final_manifest, self.manifest)
        shutil.rmtree(self.folder)
        self.lock.close()

    def _write(self, path: Path, blocks: Iterable[bytes]):
        try:
            with atomic_write(path) as file, through_compression(file, path, "wb") as contents:
                for block in blocks:
                    contents.write(block)
        except OSError as error:
            raise OSError(
                f"{path} cannot be written: {error.strerror or error}. Earlier results are kept in {self.folder}. "
                "Free some space, then run the same command with --resume."
            ) from error


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
        raise ResumeError(
            f"{path} does not exist, so it is unknown what was scored. Start again with --force."
        ) from None
    except ValueError as error:
        raise ResumeError(f"{path} is damaged ({error}). Start again with --force.") from None


def _flat(value, prefix: str = "") -> Iterator[tuple[str, object]]:
    """The leaves of nested dicts, under dotted names."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{prefix}.{key}" if prefix else key)
    else:
        yield prefix, value
