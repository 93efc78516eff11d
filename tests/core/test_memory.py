import platform

import pytest

from other_processes import printed_elsewhere

FAULTS_OF_REPEATED_ARRAYS = """
import resource
import numpy as np
from gfucb.core.memory import keep_freed_memory

def fill():
    arrays = [np.full(2**21, 1, np.uint8) for _ in range(6)]

keep_freed_memory()
fill()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    fill()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="thresholds of glibc")
def test_freed_memory_is_used_again():
    # Memory from the operating system has a page fault for each of at most 64 kB.
    assert int(printed_elsewhere(FAULTS_OF_REPEATED_ARRAYS)) < 10 * 6 * 2**21 / 2**16 / 2
