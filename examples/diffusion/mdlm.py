"""MDLM (Sahoo et al. 2024), a file for `--code`: docs/metrics.md, "Masked diffusion models".

Put configuration_mdlm.py and modeling_mdlm.py, which come with the checkpoint, into a folder `mdlm_owt` beside this
file. They are run: read them first. They need the package flash_attn, and so a GPU.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from transformers import AutoConfig, AutoModelForMaskedLM

sys.path.insert(0, str(Path(__file__).parent))
from mdlm_owt.configuration_mdlm import MDLMConfig  # noqa: E402
from mdlm_owt.modeling_mdlm import MDLM  # noqa: E402

MDLMConfig.attribute_map = {"max_position_embeddings": "model_length"}


class MaskedMDLM(MDLM):
    """Which pieces are masked is all that it is told."""

    def __init__(self, config):
        if config.time_conditioning:
            raise ValueError("This MDLM is told how much of a text is masked, which a pass here does not know.")
        super().__init__(config)

    def forward(self, input_ids, return_dict=True):
        # Without time conditioning, nothing depends on these.
        timesteps = torch.zeros(len(input_ids), device=input_ids.device)
        return super().forward(input_ids=input_ids, timesteps=timesteps, return_dict=return_dict)

    def get_input_embeddings(self):
        return SimpleNamespace(weight=self.backbone.vocab_embed.embedding)


AutoConfig.register("mdlm", MDLMConfig, exist_ok=True)
AutoModelForMaskedLM.register(MDLMConfig, MaskedMDLM, exist_ok=True)
