"""Minimal pairs during a training with transformers: the accuracy of the model, every so many steps.

    pairs = random.Random(0).sample(list(spacy_pll.read_pairs("FOLDER")), 200)
    Trainer(model, ..., processing_class=tokenizer, callbacks=[PairsInTraining(pairs, every=500)]).train()

The model is scored as it is at that step, without a copy, and left as it was: the losses are the same without this.
"""

import transformers

import spacy_pll


class PairsInTraining(transformers.TrainerCallback):
    """Prints the accuracies, and adds them to the trainer's `state.log_history`, which checkpoints save."""

    def __init__(self, pairs, every):
        self.pairs, self.every = pairs, every

    def on_step_end(self, args, state, control, *, model, processing_class, **others):
        if state.global_step % self.every == 0 and state.is_world_process_zero:
            nlp = spacy_pll.make_pipeline((model, processing_class))
            measured = spacy_pll.minimal_pairs(nlp, self.pairs).measurements()
            found = {f"pairs_{one.scorer}": one.value for one in measured if one.level == "overall"}
            state.log_history.append({**found, "step": state.global_step})
            print(state.log_history[-1])
