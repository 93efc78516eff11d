"""Repeated work on a GPU, captured once as a CUDA graph and replayed."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gfucb.core.errors import InvalidInputError

# Calls before the capture: libraries choose their algorithms and workspaces in the first calls.
WARM_UPS = 3


class CudaGraphed:
    """Work that performs the same operations on the same tensors at every call.

    A training step of a small network launches hundreds of kernels. Each launch takes longer on
    the CPU than the kernel takes on the GPU. A replay launches all of them at once.

    Args:
        work: a function without arguments and result that reads and overwrites the same tensors.
            It must not read values from the device.
        device: of the tensors; on a CPU every call runs `work`.
    """

    def __init__(self, work: Callable[[], None], device: torch.device) -> None:
        self.work = work
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __call__(self) -> None:
        """Run the work once."""
        if self.stream is None:
            self.work()
            return
        self.calls += 1
        with torch.cuda.device(self.stream.device):
            if self.calls <= WARM_UPS:
                # Gradients belong to the stream that computed them; the capture needs its own.
                self.stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(self.stream):
                    self.work()
                torch.cuda.current_stream().wait_stream(self.stream)
                return
            if self.graph is None:
                self.graph = self._capture(self.stream)
            self.graph.replay()

    def _capture(self, stream: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=stream):
                self.work()
        except RuntimeError as error:
            raise InvalidInputError(
                "a training step could not be captured as a CUDA graph: the network must not read "
                "values from the device (.item(), .tolist(), branches on values); "
                f"change it, or use device='cpu'. The error of CUDA: {error}"
            ) from error
        return graph
