"""``JoinedCrossing``: recording of a function that another worker calls in its step, and that calls other workers itself.

Its calls belong to the autograd context, and later to the replays, of that step. Its backward pass comes when the function has
returned. So gradients that come back to it are noted in one recording, for the program of the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any, cast

from ...capture.extend import EARLY, PassAcross, Recorder, RemotePart, Unrecordable
from ...core.extend import Array, Tensor
from ..backward_pass import LARGE
from ..contexts import Context
from ..current_context import recorded_context
from .call import CapturedCall
from .recording import End, StepCrossing, gradients_in
from .requests import StepRequests
from .states import StepForm
from .step import CapturedStep


def crossing_of(recorder: Recorder) -> StepCrossing:
    """Return the crossing of a recording: of a step, or of a part of one.

    Args:
        recorder: the recording.
    """
    context = recorded_context.get()
    return StepCrossing(recorder) if context is None else JoinedCrossing(recorder, context)


class JoinedCrossing(StepCrossing):
    """Distributed part of a function that another worker calls in its step.

    Args:
        recorder: the recording.
        context: the autograd context of that step.
    """

    def __init__(self, recorder: Recorder, context: Context) -> None:
        super().__init__(recorder)
        self._joined = context

    def _first_form(self) -> StepForm:
        return StepForm(joined=True)

    @cached_property
    def _requests(self) -> StepRequests:
        return StepRequests(self._parts, joined=True)

    def finish(self, results: list[Tensor]) -> list[RemotePart]:
        """Return the parts of the callees, and note gradients that will come back (``Crossing.finish``)."""
        parts = super().finish(results)
        if parts:
            by_message = {each.message_id: each.call for each in self._calls if each.message_id}
            self._joined.graph.watches.append(partial(_came, self._step, by_message))
        return parts

    def _begin(self, *call: Any) -> End:
        if self._context is None:
            self._watch(self._joined)
        return super()._begin(*call)

    def _check_results(self, results: list[Tensor]) -> None:
        pass

    def passing(self) -> PassAcross | None:
        """Return the pass from the results to the callees and back, if there are some (``Crossing.passing``)."""
        program = self._recorder.program
        if program is None or self._replay is None:
            return None
        hops = {each.hop: each.call for each in self._calls if each.hop is not None}
        by_place = {call.place: hop for hop, call in hops.items()}
        arrivals = self._earlier_arrivals()
        for place, gradients in [each for batch in arrivals for each in batch]:
            hops[by_place[place]].arrived = gradients
        came = [[(by_place[place], gradients) for place, gradients in batch] for batch in arrivals]
        return PassAcross(program, self._replay, list(hops), partial(self._message, hops), LARGE, came)

    def _earlier_arrivals(self) -> list[list[tuple[int, list[Array | None]]]]:
        """Return the gradients that came back after an earlier call that did the same.

        Raises:
            Unrecordable: they have not come yet.
        """
        awaited = {each.call.place for each in self._calls if each.message_id}
        for earlier in self._recorder.earlier:
            if earlier.parts and earlier.events == self._recorder.events:
                arrivals = list(cast(CapturedStep, earlier.parts[0]).arrivals)
                if {place for batch in arrivals for place, _ in batch} == awaited:
                    return arrivals
        raise Unrecordable(EARLY)


def _came(step: CapturedStep, by_message: Mapping[int, CapturedCall], entries: Sequence[Any]) -> None:
    """Note gradients that come back to a worker. In any thread."""
    given = [
        (by_message[number].place, gradients) for number, gradients in gradients_in(entries) if number in by_message
    ]
    if given:
        step.arrivals.append(given)
