"""Token embeddings with dropout on their numbers and on whole words.

Source of word dropout: Gal & Ghahramani 2016, arXiv:1512.05287, section 4.2; for small parallel corpora, Sennrich & Zhang
2019, arXiv:1905.11901.
"""

from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2seq.dropout import Dropout
from seq2seq.types import PAD


class TokenEmbedding(nn.Module):
    """Vectors of tokens.

    Args:
        vocabulary: ``V``.
        size: ``E``.
        dropout: on single numbers.
        word_dropout: on whole vectors, each position on its own; the others are scaled up.
    """

    def __init__(self, vocabulary: int, size: int, dropout: float = 0.0, word_dropout: float = 0.0):
        super().__init__()
        self.table = nn.Embedding(vocabulary, size, padding_idx=PAD)
        # Numbers of variance 1 go into the network, and a tied output layer still starts with small logits.
        self.scale = size**0.5
        nn.init.normal_(self.table.weight, std=1 / self.scale)
        nn.init.zeros_(self.table.weight[PAD].detach())
        self.dropout = Dropout(dropout)
        self.word_dropout = Dropout(word_dropout, "word_dropout")

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T E"]:
        embedded = self.dropout(self.scale * self.table(tokens))
        if self.training and self.word_dropout.dropped:
            embedded = embedded * self.word_dropout.mask(embedded[..., :1])  # [B, T, 1]
        return embedded
