"""The largest of a row against a sort, the likeliest by hand."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from seq2seq.decoding.largest import largest, likeliest


@given(
    st.integers(0, 1000), st.integers(1, 300), st.integers(1, 5), st.sampled_from([0.0, 0.3, 1.0]), st.integers(1, 9)
)
def test_the_largest_are_those_of_a_sort(seed, width, count, forbidden, block):
    torch.manual_seed(seed)
    scores = torch.randn(3, width).masked_fill(torch.rand(3, width) < forbidden, -torch.inf)
    count = min(count, width)
    best, index = largest(scores, count, block)
    assert torch.equal(best, scores.sort(dim=1, descending=True).values[:, :count])
    assert torch.equal(scores.gather(1, index), best)
    assert all(len(set(row)) == count for row in index.tolist())
    scores[0, width // 2] = torch.nan
    assert largest(scores, count, block)[0][0, 0].isnan()


def test_all_but_the_likeliest_is_forbidden():
    found = likeliest(torch.tensor([[1.0, 3.0, 2.0], [-1.0, -2.0, -3.0]]))
    assert found.tolist() == [[-torch.inf, 3.0, -torch.inf], [-1.0, -torch.inf, -torch.inf]]
