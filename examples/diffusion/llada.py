"""LLaDA (Nie et al. 2025), a file for `--code`: docs/metrics.md, "Masked diffusion models".

Put configuration_llada.py and modeling_llada.py, which come with the checkpoint, into a folder `llada_base` beside this
file. They are run: read them first.
"""

import sys
from pathlib import Path

from transformers import AutoConfig, AutoModelForMaskedLM

sys.path.insert(0, str(Path(__file__).parent))
from llada_base.configuration_llada import LLaDAConfig  # noqa: E402
from llada_base.modeling_llada import LLaDAModelLM  # noqa: E402

AutoConfig.register("llada", LLaDAConfig, exist_ok=True)
AutoModelForMaskedLM.register(LLaDAConfig, LLaDAModelLM, exist_ok=True)
