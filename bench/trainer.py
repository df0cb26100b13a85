"""The same UPOS work by the Hugging Face `Trainer`, as its users write it: the yardstick.

So that scores can be compared, the recipe is ours: words are split and labelled on their first
piece with a character, the head starts as ours, the first step has a rate (the library's own
warm-up begins at 0, which loses one of 32 steps here). Everything else is the library's own way:
`Trainer.train` with evaluation on dev after every epoch and the best epoch loaded at the end,
`Trainer.predict` for each language, then the states of every layer for CKA, pooled in a second
pass.
"""

import tempfile
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    AutoModelForTokenClassification,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

from trainables.accounting import Stopwatch
from trainables.data.conllu import read_conllu
from trainables.data.subwords import split_words
from trainables.encoders.pretrained import load_tokenizer
from trainables.similarity.base import compare
from trainables.spec import Request, TrialSpec
from trainables.training import learning_rate

IGNORED = -100


class Tagged(Dataset[dict[str, list[int]]]):
    """Sentences of a treebank as the Trainer wants them."""

    def __init__(self, path: str, limit: int | None, tokenizer: Any, labels: list[str]) -> None:  # noqa: ANN401 - untyped library
        """Tokenise a whole file."""
        self.rows = []
        for sentence in read_conllu(path, limit):
            ids, targets = [tokenizer.bos_token_id or 0], [IGNORED]
            split = split_words(sentence.words, tokenizer)
            for (pieces, at), tag in zip(split, sentence.upos, strict=True):
                ids += pieces
                targets += [
                    (labels.index(tag) if tag in labels else len(labels)) if i == at else IGNORED
                    for i in range(len(pieces))
                ]
            ids, targets = ids[:511], targets[:511]
            ids.append(tokenizer.eos_token_id or 2)
            targets.append(IGNORED)
            self.rows.append(
                {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": targets}
            )

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, list[int]]:
        return self.rows[index]


def accuracy(prediction: Any) -> dict[str, float]:  # noqa: ANN401 - untyped library
    """Right words out of labelled words."""
    kept = prediction.label_ids != IGNORED
    right = prediction.predictions.argmax(-1)[kept] == prediction.label_ids[kept]
    return {"accuracy": float(right.mean())}


class WarmTrainer(Trainer):  # type: ignore[misc] # ships no types we could follow
    """The library's loop with our rates."""

    def __init__(self, spec: TrialSpec, **arguments: Any) -> None:  # noqa: ANN401 - the library's own
        """As the library's, and the spec whose rates are wanted."""
        super().__init__(**arguments)
        self._hyper = spec.hyper

    def create_scheduler(
        self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None
    ) -> torch.optim.lr_scheduler.LRScheduler:
        """Linear warm-up and decay; step k of n has the rate that ours has."""
        hyper, n = self._hyper, num_training_steps
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer or self.optimizer,
            lambda step: learning_rate(step, n, hyper) / hyper.learning_rate,
        )
        return self.lr_scheduler


def run(spec: TrialSpec, request: Request, watch: Stopwatch) -> dict[str, float]:
    """Train, predict and compare; test accuracy by language, and the time of each part."""
    assert spec.train is not None  # noqa: S101 - a training trial
    assert spec.dev is not None  # noqa: S101 - as above
    set_seed(spec.seed)
    tokenizer = load_tokenizer(spec.encoder)
    tags = {t for s in read_conllu(spec.train.location, spec.train.limit) for t in s.upos}
    labels = sorted(tags)  # and one more, never trained, for tags that only the tests have
    model = AutoModelForTokenClassification.from_pretrained(
        spec.encoder.location, num_labels=len(labels) + 1, dtype=torch.float32
    )
    with_our_head(model)
    with tempfile.TemporaryDirectory() as folder:
        trainer = WarmTrainer(
            spec,
            model=model,
            args=TrainingArguments(
                output_dir=folder,
                learning_rate=spec.hyper.learning_rate,
                per_device_train_batch_size=spec.hyper.batch_size,
                per_device_eval_batch_size=32,
                num_train_epochs=spec.hyper.epochs,
                warmup_steps=spec.hyper.warmup,
                max_grad_norm=0.0,
                eval_strategy="epoch",
                save_strategy="epoch",
                save_total_limit=1,
                load_best_model_at_end=True,
                metric_for_best_model="accuracy",
                seed=spec.seed,
                report_to=[],
                disable_tqdm=True,
                logging_strategy="no",
                use_cpu=True,
            ),
            train_dataset=Tagged(spec.train.location, spec.train.limit, tokenizer, labels),
            eval_dataset=Tagged(spec.dev.location, spec.dev.limit, tokenizer, labels),
            data_collator=DataCollatorForTokenClassification(tokenizer),
            compute_metrics=accuracy,
        )
        watch.lap("load")
        trainer.train()
        watch.lap("train")
        tests = {
            ref.language: Tagged(ref.location, ref.limit, tokenizer, labels)
            for ref in request.targets
        }
        found = {
            language: accuracy(trainer.predict(test)).get("accuracy", 0.0)
            for language, test in tests.items()
        }
    watch.lap("evaluate")
    states = {language: pooled(trainer.model, test, tokenizer) for language, test in tests.items()}
    if request.similarity is not None:
        compare(states, list(request.similarity.pivots), "linear-cka", 0, 0)
    watch.lap("similarity")
    return found


def with_our_head(model: Any) -> None:  # noqa: ANN401 - untyped library
    """Start the head as ours does, without dropout: the recipe is to be the same on both sides."""
    model.dropout = torch.nn.Identity()
    bound = model.config.hidden_size**-0.5
    with torch.no_grad():
        for parameter in model.classifier.parameters():
            parameter.uniform_(-bound, bound)


def pooled(model: Any, test: Tagged, tokenizer: Any) -> np.ndarray:  # noqa: ANN401 - untyped
    """Mean state of each sentence in every layer, shape [layers n d], batch by batch."""
    collate = DataCollatorForTokenClassification(tokenizer)
    parts = []
    model.eval()
    for at in range(0, len(test), 32):
        batch = collate([test[i] for i in range(at, min(at + 32, len(test)))])
        with torch.no_grad():
            output = model(
                input_ids=batch["input_ids"],
                attention_mask=batch["attention_mask"],
                output_hidden_states=True,
            )
        inner = batch["attention_mask"].clone()
        inner[:, 0] = 0
        inner[torch.arange(len(inner)), batch["attention_mask"].sum(1) - 1] = 0
        weight = inner[None, :, :, None].float()
        states = torch.stack(output.hidden_states)
        parts.append(((states * weight).sum(2) / weight.sum(2)).numpy())
    return np.concatenate(parts, axis=1)
