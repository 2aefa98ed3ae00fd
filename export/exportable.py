"""Whether a back end can be given a model: what the architecture forbids, before any work."""

from __future__ import annotations

from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.parity.checks import Check
from edgeinfinite.export.parity.untouched import refuse_other_results
from edgeinfinite.models.architecture import check_supported
from edgeinfinite.models.experts import expert_modules, experts_of


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
    experts = experts_of(model)
    if experts and not list(expert_modules(model)):
        raise EdgeInfiniteError(
            f"{type(model).__name__} can't be exported: its layers have experts ({experts}) that "
            "don't go through transformers' interface of experts; choose another model"
        )
