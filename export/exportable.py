"""Whether a back end can be given a model: what the architecture forbids, before any work."""

from __future__ import annotations

from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.parity.checks import Check
from edgeinfinite.export.parity.untouched import refuse_other_results
from edgeinfinite.models.architecture import check_supported


def check_exportable(model: PreTrainedModel, policy: str) -> list[Check]:
    """Refuses a model that can't be exported, or that doesn't compute what transformers does.

    Args:
        model: float32, not attached yet.
        policy: what stays in the cache.

    Returns:
        What was compared with transformers, see `parity.untouched`.

    Raises:
        EdgeInfiniteError: names the architecture and the reason.
    """
    check_form(model)
    return refuse_other_results(model, policy)


def check_form(model: PreTrainedModel) -> None:
    """What `check_exportable` refuses whatever the weights are.

    Raises:
        EdgeInfiniteError: names the architecture and the reason.
    """
    check_supported(model)
    if experts := experts_of(model):
        raise EdgeInfiniteError(
            f"{type(model).__name__} can't be exported: its layers have experts ({experts}), which "
            "no back end runs yet; choose a dense model"
        )


def experts_of(model: PreTrainedModel) -> str | None:
    """The class of what holds a layer's experts; None if its MLPs are dense."""
    for layer in model.get_decoder().layers:
        for name, module in layer.named_modules():
            if name.split(".")[-1] == "experts" or type(module).__name__.endswith("Experts"):
                return type(module).__name__
    return None
