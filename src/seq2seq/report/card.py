"""The model card of a shared model: what it is, how well it does, and what it is not made for."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

METRICS = {"sacrebleu": ("BLEU", "bleu"), "chrf": ("chrF", "chrf")}
"""What the hub calls a metric, what people call it, what ``scores.json`` calls it."""
NEEDED = (
    *("languages", "data", "attention", "choices", "seed", "bleu", "bleu_signature", "chrf", "chrf_signature"),
    *("n", "truncated", "loss", "parameters", "train_seconds", "by_source_length"),
)
"""What a card tells of ``scores.json``."""


def model_card(data: ModelCardData, name: str, scores: Mapping[str, Any] | None) -> ModelCard:
    """Fills the card's template.

    Args:
        data: what the hub is told of every model of this project.
        name: the model's, as ``from_pretrained`` takes it.
        scores: the content of the run's ``scores.json``; None if the weights were not tested.
    """
    title = name.rpartition("/")[2]
    described = data.to_dict()
    if scores is not None:
        described |= {
            "language": list(scores["languages"]),
            "metrics": list(METRICS),
            "model_name": title,
            "eval_results": [
                EvalResult(
                    task_type="translation",
                    dataset_type=scores["data"],
                    dataset_name=scores["data"],
                    dataset_split="test",
                    metric_type=metric,
                    metric_name=label,
                    metric_value=round(scores[key], 2),
                )
                for metric, (label, key) in METRICS.items()
            ],
        }
    template = files("seq2seq.report").joinpath("templates/card.md").read_text(encoding="utf-8")
    return ModelCard.from_template(
        ModelCardData(**described), template_str=template, title=title, name=name, scores=scores
    )
