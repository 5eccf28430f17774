"""LanguageModel: a bundle that answers."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from oplet.errors import LimitError, ModelError, StateError
from oplet_lm.bundles.bundle import Bundle
from oplet_lm.bundles.metadata import Sampling, Token
from oplet_lm.rendering.template import Message, join, render
from oplet_lm.running.executor import Executor
from oplet_lm.running.sampler import Sampler
from oplet_lm.running.stops import Stops
from oplet_lm.running.tokenizer import TextStream, Tokenizer

__all__ = ["Answer", "LanguageModel"]

#: What a conversation is: a text, which is given to the model as it is, or messages, which the bundle's chat template makes a text of.
Prompt: TypeAlias = "str | Sequence[Message]"
#: By what an answer ends, see `Answer`; and what generates one: tokens that are certain to be a part of it.
Ending: TypeAlias = Literal["stop", "length", "context"]
Run: TypeAlias = Generator[list[int], None, Ending]


class Answer(str):
    """The text that a model generates.

    Attributes:
        tokens: the ids of its tokens, without the stop sequence.
        ended_by: why the text ended: "stop" (a stop sequence), "length" (`max_tokens`) or "context" (the context is full).
    """

    tokens: list[int]
    ended_by: Ending


class LanguageModel:
    """A language model in a `.litertlm` or `.task` bundle.

    Args:
        path: the bundle.
        num_threads: the number of threads that kernels may use; 1 if None.

    Attributes:
        bundle: the bundle.
        metadata: the bundle's metadata of the model: special tokens, sampling, templates.
        context: the length of the context in tokens: the most that a conversation may have.

    Raises:
        ModelError: the file is no such bundle, or damaged.

    Examples:
        >>> from oplet_lm import LanguageModel
        >>> model = LanguageModel("model.litertlm")  # doctest: +SKIP
        >>> model.generate([{"role": "user", "content": "Hello"}])  # doctest: +SKIP
        >>> for piece in model.stream("Once upon a time", max_tokens=50):  # doctest: +SKIP
        ...     print(piece, end="")
    """

    def __init__(self, path: str | os.PathLike[str], *, num_threads: int | None = None) -> None:
        self.bundle = Bundle(path)
        self.metadata = self.bundle.metadata()
        self.tokenizer = Tokenizer(self.bundle)
        self._stops = Stops(self._ids(token) for token in self.metadata.stops)
        self._executor = Executor(self.bundle, self.metadata, num_threads)
        self.context = self._executor.context
        self._streams = 0

    def generate(
        self,
        prompt: Prompt,
        *,
        max_tokens: int | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        temperature: float | None = None,
        seed: int | None = None,
    ) -> Answer:
        """Generate the model's answer to a prompt.

        Args:
            prompt: a text to go on with, or messages, `{"role": "user", "content": "..."}`.
            max_tokens: the most tokens to generate; None for as many as the context has room for.
            top_k, top_p, temperature, seed: sampling parameters; None for the bundle's (`metadata.sampling`). A temperature of 0
                takes the most likely tokens.

        Raises:
            LimitError: the prompt is longer than the context.
            ModelError: the bundle has no chat template for messages, or a damaged one.
            ValueError: one of the numbers is negative.
        """
        run = _Collected(self._run(prompt, max_tokens, self._sampling(top_k, top_p, temperature, seed)))
        tokens = [token for piece in run for token in piece]
        answer = Answer(self.tokenizer.decode(tokens))
        answer.tokens, answer.ended_by = tokens, run.ended_by
        return answer

    def stream(
        self,
        prompt: Prompt,
        *,
        max_tokens: int | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        temperature: float | None = None,
        seed: int | None = None,
    ) -> Iterator[str]:
        """Return an iterator over pieces of the answer's text, as they are generated; the arguments are those of `generate`.

        Raises:
            LimitError: the prompt is longer than the context; or, from the iterator, the context is full before the answer ends.
            StateError: from the iterator: another answer was begun meanwhile.
        """
        return self._texts(_Collected(self._run(prompt, max_tokens, self._sampling(top_k, top_p, temperature, seed))))

    def _texts(self, run: _Collected) -> Iterator[str]:
        text = TextStream(self.tokenizer)
        for tokens in run:
            if piece := text.add(tokens):
                yield piece
        if piece := text.add([], last=True):
            yield piece
        if run.ended_by == "context":
            raise LimitError(f"The context of {self.context} tokens is full before the answer ends; begin a new conversation.")

    def encode(self, prompt: Prompt) -> list[int]:
        """Return the token ids of a prompt, with the start token if the model has one.

        Raises:
            ModelError: the bundle has no chat template for messages, or a damaged one.
            LimitError: the prompt is too long.
        """
        tokens = self.tokenizer.encode(prompt if isinstance(prompt, str) else self.render(prompt))
        start = [] if self.metadata.start is None else list(self._ids(self.metadata.start))
        return tokens if tokens[: len(start)] == start else start + tokens

    def render(self, messages: Sequence[Message]) -> str:
        """Apply the bundle's chat template to messages; return the text.

        Raises:
            ModelError: the bundle has no chat template, or the template fails.
            LimitError: the template takes too long.
            ValueError: a message has no role or content.
        """
        if not all(isinstance(each, dict) and "role" in each and "content" in each for each in messages):
            raise ValueError('Each message needs a "role" and a "content", as {"role": "user", "content": "Hello"}.')
        if self.metadata.template:
            start = "" if self.metadata.start is None else self._text(self.metadata.start)
            variables = {"add_generation_prompt": True, "bos_token": start, "eos_token": self._text(*self.metadata.stops[:1])}
            return render(self.metadata.template, messages, variables)
        if self.metadata.affixes:
            return join(self.metadata.affixes, messages)
        raise ModelError(f"'{self.bundle.path}' has no chat template; give the prompt as a text.")

    @property
    def copied_bytes(self) -> int:
        """The bytes of KV caches that steps have copied so far; 0 where the model updates them in place."""
        return self._executor.copied_bytes

    def _run(self, prompt: Prompt, max_tokens: int | None, sampling: Sampling) -> Run:
        """Yield tokens that are certain to be a part of the answer; return by what it ended."""
        if max_tokens is not None and max_tokens < 0:
            raise ValueError(f"max_tokens is {max_tokens}; give a number from 0 on.")
        tokens = self.encode(prompt)
        if not tokens:
            raise ModelError("The prompt is empty, and the model has no start token; give a text.")
        self._streams += 1
        return self._steps(
            tokens, max_tokens, Sampler(sampling, self.metadata.suppressed), self._streams, isinstance(prompt, str)
        )

    def _steps(self, prompt: list[int], most: int | None, sample: Sampler, stream: int, anew: bool) -> Run:
        if anew:  # so that a text always gives the same answer, whatever was asked before
            self._executor.tokens.clear()
        logits = self._executor.read(prompt)
        tokens: list[int] = []
        told = 0
        while most is None or len(tokens) < most:
            tokens.append(sample(logits))
            if ending := self._stops.ending(tokens):
                if told < (end := len(tokens) - ending):
                    yield tokens[told:end]
                return "stop"
            certain = len(tokens) - self._stops.begun(tokens)
            if told < certain:
                yield tokens[told:certain]
                told = certain
            if stream != self._streams:
                raise StateError("Another answer was begun meanwhile; a LanguageModel gives one after the other.")
            if len(self._executor.tokens) >= self.context:
                if told < len(tokens):
                    yield tokens[told:]
                return "context"
            if most is None or len(tokens) < most:
                logits = self._executor.decode(tokens[-1])
        if told < len(tokens):
            yield tokens[told:]
        return "length"

    def _sampling(self, top_k: int | None, top_p: float | None, temperature: float | None, seed: int | None) -> Sampling:
        given = {"top_k": top_k, "top_p": top_p, "temperature": temperature, "seed": seed}
        chosen = {name: value for name, value in given.items() if value is not None}
        for name, value in chosen.items():
            if not 0 <= value < float("inf"):
                raise ValueError(f"{name} is {value}; give a number from 0 on.")
        return replace(self.metadata.sampling, **chosen)  # type: ignore[arg-type]

    def _ids(self, token: Token) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(token)) if isinstance(token, str) else token

    def _text(self, token: Token = "") -> str:
        return token if isinstance(token, str) else self.tokenizer.decode(token)


class _Collected:
    """An iterator over the tokens of an answer, which keeps by what it ended."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.ended_by: Ending = "stop"

    def __iter__(self) -> Iterator[list[int]]:
        self.ended_by = yield from self._run
