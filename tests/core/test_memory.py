import platform

import pytest

from other_processes import printed_elsewhere

FAULTS_OF_REPEATED_ARRAYS = """
import resource
import numpy as np
from gfucb.core import memory

def fill():
    arrays = [np.full({size}, 1, np.uint8) for _ in range(6)]

memory.{function}()
fill()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    fill()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="thresholds of glibc")
@pytest.mark.parametrize(
    ("function", "size"), [("keep_freed_memory", 2**21), ("keep_more_freed_memory", 2**24)]
)
def test_freed_memory_is_used_again(function, size):
    program = FAULTS_OF_REPEATED_ARRAYS.format(function=function, size=size)
    # Memory from the operating system has a page fault for each of at most 64 kB.
    assert int(printed_elsewhere(program)) < 10 * 6 * size / 2**16 / 2
