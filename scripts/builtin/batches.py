"""What the model reads in each step of training: it follows from the corpus, the arguments and the step's number.

All of it is computed on the CPU. If the model is on a GPU, other processes do that ahead of it.

Needs torch, transformers, tokenizers and numpy, as data.py does.
"""

import math
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset

from scripts.builtin.data import Pieces, choose_targets, collate, epoch_batches
from scripts.builtin.one_pass import Drawn, Rows, draw, group_rows, masked_rows

# The number of ids that a process reads at once on a CPU. Small parts stay in the cache, but each part has a cost: with
# two cores, the gradients of a batch of 7,800 ids took 1.54 s in halves, 1.19 s in parts of 2,000 ids, and 1.37 s in
# parts of 1,000. When less was going on in the shared cache, halves took 1.25 s and parts of 2,000 ids 1.15 to 1.22 s.
# A CPU with AMX is faster with larger products. There, one core trained at 5,700 pieces/s in parts of 2,000 ids and
# at 6,100 with a batch of 8,192 at once (`--part-ids`); with `--compile`, at 7,100 and at 8,600.
CPU_IDS = 2048
# The processes that prepare batches for a GPU, and how many batches each has ready.
PREPARERS, READY = min(8, os.cpu_count() or 1), 8
# In each held-out line, so many pieces at most are scored.
SCORED_PER_LINE = 4


class Part(NamedTuple):
    """Some lines of a batch, which the model reads at once."""

    ids: torch.Tensor  # int, shape (lines, longest): what the model reads
    real: torch.Tensor  # bool, the same shape: False in the padding
    at: torch.Tensor  # int, shape (targets,): the positions that predict the targets, in `ids` as one row
    target: torch.Tensor  # int, shape (targets,): the ids to predict
    # For scores in one pass: some targets, each behind its masks, and the same ones in groups. None: not trained.
    exact: Rows | None = None
    groups: Rows | None = None
    # The number of targets in the whole batch for each of the drawn ones. float, shape ().
    per_drawn: torch.Tensor | None = None


class Scored(NamedTuple):
    """Some pieces of some lines, each read behind its masks under two metrics, and in groups under `word_l2r`."""

    length: torch.Tensor  # int, shape (targets,): the pieces of the line, without the special ones
    original: Rows
    word_l2r: Rows
    groups: Rows | None  # None: scores in one pass are not trained


def masked_part(
    ids: torch.Tensor,
    real: torch.Tensor,
    targets: torch.Tensor,
    *drawn: torch.Tensor,
    mask_id: int,
    per_drawn: torch.Tensor | None = None,
) -> Part:
    """Lines in which the targets (bool, the shape of `ids`) are replaced by [MASK]. drawn: The fields of `Drawn`."""
    exact = groups = None
    if drawn:
        exact, groups = (read(ids, real, Drawn(*drawn), mask_id) for read in (masked_rows, group_rows))
    at = targets.flatten().nonzero()[:, 0]
    return Part(ids.masked_fill(targets, mask_id), real, at, ids.flatten()[at], exact, groups, per_drawn)


def causal_part(ids: torch.Tensor, real: torch.Tensor) -> Part:
    """Lines in which all pieces but the first are predicted, each by those before it."""
    follows = real.clone()
    follows[:, 0] = False
    at = follows.flatten().nonzero()[:, 0]
    return Part(ids, real, at - 1, ids.flatten()[at])


def to_device(part: Any, device: str) -> Any:
    """A part, or one of its fields, on the device."""
    if isinstance(part, torch.Tensor):
        return part.to(device, non_blocking=True)
    return part and type(part)(*(to_device(field, device) for field in part))


class Batches(Dataset):
    """For each step, the parts of its batch, and the number of pieces in the whole batch.

    args: The arguments of train.py.
    share (slice): The lines of each batch that this process reads.
    """

    def __init__(self, data: Pieces, tokenizer, n_special: int, args, share: slice = slice(None)):
        self.ids, self.offsets = data
        self.args, self.share, self.n_special = args, share, n_special
        self.pad_id, self.mask_id = tokenizer.pad_token_id, tokenizer.mask_token_id
        pieces = tokenizer.convert_ids_to_tokens([*range(len(tokenizer))])
        self.begins_word = torch.tensor([not piece.startswith("##") for piece in pieces])
        self.epoch, self.begin, self.lines = -1, 0, []  # of the present epoch: its number, its first step, its batches

    def __getitem__(self, step: int) -> tuple[list[Part], int]:
        args = self.args
        if step < self.begin:
            self.epoch, self.begin, self.lines = -1, 0, []
        while step >= self.begin + len(self.lines):
            self.epoch, self.begin = self.epoch + 1, self.begin + len(self.lines)
            self.lines = epoch_batches(self.offsets, args.batch_pieces, (args.seed, self.epoch))
        rate = args.mask_rate + (args.final_mask_rate - args.mask_rate) * step / args.steps
        lines, seed = self.lines[step - self.begin], args.seed * 1_000_003 + step
        n_pieces = int((self.offsets[lines + 1] - self.offsets[lines]).sum())
        one_pass_ids = args.one_pass_ids if args.one_pass else 0
        return self.parts(lines, rate, seed, args.word_masking, args.few_masks, one_pass_ids), n_pieces

    def held_out(self) -> Iterator[list[Part]]:
        """All lines once, with targets that are the same each time."""
        for i, lines in enumerate(epoch_batches(self.offsets, self.args.batch_pieces, (0,))):
            yield self.parts(lines, 0.15, i)

    def held_out_scored(self) -> Iterator[Scored]:
        """Some pieces of each line, as scoring reads them. They are the same each time."""
        for i, lines in enumerate(epoch_batches(self.offsets, self.args.part_ids, (0,))):
            ids, real = collate(self.ids, self.offsets, lines, self.pad_id)
            original, word_l2r = (
                draw(ids, self.n_special, self.begins_word, i, per_line=SCORED_PER_LINE, word_l2r=share)
                for share in (0.0, 1.0)
            )
            length = (ids >= self.n_special).sum(dim=1)[original.target.nonzero()[:, 0]]
            yield Scored(
                length,
                masked_rows(ids, real, original, self.mask_id),
                masked_rows(ids, real, word_l2r, self.mask_id),
                group_rows(ids, real, word_l2r, self.mask_id) if self.args.one_pass else None,
            )

    def parts(
        self, lines, rate: float, seed: int, word_masking: float = 0, few_masks: float = 0, one_pass_ids: int = 0
    ) -> list[Part]:
        """Read some lines, choose targets at a rate, and divide all that into parts."""
        args = self.args
        ids, real = collate(self.ids, self.offsets, lines, self.pad_id)
        batch = [ids, real]
        per_drawn = None
        if args.objective == "masked":
            targets = choose_targets(ids, self.n_special, rate, seed, self.begins_word, word_masking, few_masks)
            batch.append(targets)
            if one_pass_ids:
                drawn = draw(ids, self.n_special, self.begins_word, seed, one_pass_ids)
                per_drawn = targets.sum() / drawn.target.sum()
                batch += drawn
        batch = [x[self.share] for x in batch]
        n_parts = math.ceil(batch[0].numel() / args.part_ids) if args.device == "cpu" else 1
        divided = ([x[i::n_parts] for x in batch] for i in range(min(n_parts, len(batch[0]))))
        if args.objective == "causal":
            return [causal_part(*some) for some in divided]
        return [masked_part(*some, mask_id=self.mask_id, per_drawn=per_drawn) for some in divided]


def iterate(batches: Batches, steps: range) -> Iterable[tuple[list[Part], int]]:
    """What each of some steps reads. If it is for a GPU, other processes prepare it."""
    if batches.args.device == "cpu":
        return map(batches.__getitem__, steps)
    return DataLoader(
        batches,
        batch_size=None,
        sampler=steps,
        num_workers=PREPARERS,
        prefetch_factor=READY,
        pin_memory=torch.cuda.is_available(),
    )
