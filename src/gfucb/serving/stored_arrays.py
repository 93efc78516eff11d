"""Tensors and texts as bytes: exact, compact, and identified by a digest of their content."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gfucb.core.errors import DecisionLogError
from gfucb.core.validation.arrays import FLOATS, INTEGERS

JSON = "json"
DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in (*FLOATS, *INTEGERS, torch.bool)}
DIGEST_SIZE = 16


@dataclass(frozen=True)
class StoredArray:
    """The bytes of a tensor, row by row, or of a value as JSON (with dtype "json")."""

    dtype: str
    shape: tuple[int, ...]
    content: bytes

    @property
    def digest(self) -> bytes:
        """Identifies the array; equal arrays are stored once."""
        hasher = hashlib.blake2b(digest_size=DIGEST_SIZE)
        hasher.update(json.dumps([self.dtype, self.shape]).encode())
        hasher.update(self.content)
        return hasher.digest()

    @classmethod
    def of_tensor(cls, tensor: Tensor) -> StoredArray:
        """The bytes of a tensor."""
        rows = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        content = rows.reshape(-1).view(torch.uint8).numpy().tobytes()
        return cls(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), content)

    @classmethod
    def of_json(cls, value: Any) -> StoredArray:
        """The bytes of lists, texts and numbers."""
        return cls(JSON, (), json.dumps(value).encode())

    def tensor(self) -> Tensor:
        """The tensor with these bytes."""
        dtype = DTYPES.get(self.dtype)
        if dtype is None:
            raise DecisionLogError(f"the log holds an array of unknown type {self.dtype!r}")
        if len(self.content) != math.prod(self.shape) * dtype.itemsize:
            raise DecisionLogError(
                f"the log holds {len(self.content)} bytes for a {self.dtype} array of "
                f"shape {list(self.shape)}; it is damaged"
            )
        if not self.content:
            return torch.empty(self.shape, dtype=dtype)
        return torch.frombuffer(bytearray(self.content), dtype=dtype).reshape(self.shape)

    def value(self) -> Any:
        """The value with these bytes."""
        return json.loads(self.content)
