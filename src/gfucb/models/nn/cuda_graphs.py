"""Work that is repeated on a GPU, recorded once and replayed (CUDA graphs)."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gfucb.core.errors import InvalidInputError

# Calls before the recording: libraries choose their algorithms and workspaces in the first ones.
WARM_UPS = 3


class CudaGraphed:
    """Work that does the same to the same tensors at every call.

    A training step of small networks is hundreds of launches, each of which costs a processor more
    than it costs the GPU. Replayed, all of them are one.

    Args:
        work: takes and returns nothing, and reads and writes tensors that stay where they are. It
            must not look at values on the device.
        device: where these are; on a CPU the work is simply done.
    """

    def __init__(self, work: Callable[[], None], device: torch.device) -> None:
        self.work = work
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __call__(self) -> None:
        """Do the work once."""
        if self.stream is None:
            self.work()
            return
        self.calls += 1
        with torch.cuda.device(self.stream.device):
            if self.calls <= WARM_UPS:
                # Gradients remember the stream they were made in; recording needs one of its own.
                self.stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(self.stream):
                    self.work()
                torch.cuda.current_stream().wait_stream(self.stream)
                return
            if self.graph is None:
                self.graph = self._record(self.stream)
            self.graph.replay()

    def _record(self, stream: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=stream):
                self.work()
        except RuntimeError as error:
            raise InvalidInputError(
                "a training step could not be recorded on the GPU: the network must not look at "
                "values on the device (.item(), .tolist(), branches on numbers) while it computes; "
                f"change it, or use device='cpu'. CUDA says: {error}"
            ) from error
        return graph
