"""The whole model: embeddings, encoder, decoder, output layer."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2seq.errors import ConfigError
from seq2seq.models.decoder import Decoder
from seq2seq.models.embedding import TokenEmbedding
from seq2seq.parts import complete
from seq2seq.types import PAD, Builder, Decoded, Memory, State


class Seq2Seq(nn.Module):
    """Translates token ids to token ids.

    Args:
        source_vocabulary: ``V`` of the source, told by the tokenizer.
        target_vocabulary: ``V`` of the target.
        joint: True if both sides use one vocabulary.
        embedding_size: ``E``.
        encoder: waits for ``input_size``.
        decoder: waits for ``embedding``, ``embedding_size`` and ``memory_size``.
        tying: which tables are one: ``none``; ``target``, the target embedding and the output layer; ``all``, the source
            embedding as well.
        dropout: on embeddings.
        word_dropout: on whole words of source and target.

    Raises:
        ConfigError: a size does not fit, or everything is to be tied and the two sides have a vocabulary each.
    """

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        joint: bool,
        embedding_size: int,
        encoder: Builder,
        decoder: Builder,
        tying: str = "target",
        dropout: float = 0.0,
        word_dropout: float = 0.0,
    ):
        super().__init__()
        if tying not in ("none", "target", "all"):
            raise ConfigError(f"tying must be none, target or all, found {tying!r}")
        if tying == "all" and not joint:
            raise ConfigError(
                "tying=all needs one vocabulary for both languages: set tokenizer.joint=true or tying=target"
            )
        if embedding_size < 1:
            raise ConfigError(f"embedding_size must be at least 1, found {embedding_size}")
        self.target_embedding = TokenEmbedding(target_vocabulary, embedding_size, dropout, word_dropout)
        self.source_embedding = (
            self.target_embedding
            if tying == "all"
            else TokenEmbedding(source_vocabulary, embedding_size, dropout, word_dropout)
        )
        self.encoder = complete(encoder, "encoder", input_size=embedding_size)
        self.decoder: Decoder = complete(
            decoder,
            "model.decoder",
            embedding=self.target_embedding,
            embedding_size=embedding_size,
            memory_size=self.encoder.memory_size,
        )
        self.output = nn.Linear(embedding_size, target_vocabulary)
        nn.init.zeros_(self.output.bias)
        if tying != "none":
            self.output.weight = self.target_embedding.table.weight

    def encode(self, source: Int[Tensor, "B S"]) -> Memory:
        """Reads the source; ``PAD`` is padding."""
        return self.encoder(self.source_embedding(source), source != PAD)

    def forward(self, source: Int[Tensor, "B S"], inputs: Int[Tensor, "B T"]) -> Decoded:
        """Teacher forcing: features of every target position, given the true tokens before it."""
        return self.decoder(inputs, self.encode(source))

    def start(self, source: Int[Tensor, "B S"]) -> State:
        """The decoder's state before the first token."""
        return self.decoder.start(self.encode(source))

    def step(self, tokens: Int[Tensor, "B"], state: State) -> tuple[Float[Tensor, "B V"], Float[Tensor, "B S"], State]:
        """Scores of every next token after ``tokens``, the attention weights, and the state that follows."""
        decoded, state = self.decoder.step(tokens, state)
        return self.output(decoded.features.squeeze(1)), decoded.weights.squeeze(1), state

    def parameter_counts(self) -> dict[str, int]:
        """Trainable numbers by part, a shared table counted once, and their ``total``."""
        counts: dict[str, int] = {}
        seen: set[int] = set()
        for name, parameter in self.named_parameters():
            if parameter.requires_grad and id(parameter) not in seen:
                seen.add(id(parameter))
                part = "attention" if name.startswith("decoder.attention.") else name.split(".")[0]
                counts[part] = counts.get(part, 0) + parameter.numel()
        return counts | {"total": sum(counts.values())}
