import sys

import pytest
import torch

from trainables.memory import peak, restart_peak


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux starts the peak anew")
def test_the_peak_is_that_of_the_trial_and_not_of_the_process():
    """What a trial before took and gave back is not counted; what this one takes is."""
    cpu = torch.device("cpu")
    large = torch.ones(64 * 2**20, dtype=torch.uint8)  # 64 MiB, mapped: freeing gives it back
    before = peak(cpu)
    del large
    restart_peak(cpu)
    now = peak(cpu)
    assert now < before - 32 * 2**20
    again = torch.ones(48 * 2**20, dtype=torch.uint8)
    assert peak(cpu) > now + 32 * 2**20
    del again
