"""Hashes of 64-bit words: those of SplitMix64, on which all draws of networks rest."""

import torch

from gfucb.core.hashed_draws import mixed


def splitmix(word: int) -> int:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014) on unsigned integers."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
    return word ^ (word >> 31)


def test_words_are_mixed_as_by_splitmix_and_stay_as_they_were():
    words = torch.tensor([0, 1, -1, 2**62 + 12345, -(2**63), 7**22 - 3**40])
    before = words.clone()
    found = [int(word) % 2**64 for word in mixed(words)]
    assert found == [splitmix(int(word) % 2**64) for word in before]
    assert torch.equal(words, before)
