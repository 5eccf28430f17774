"""LanguageModel: a bundle that answers."""

from __future__ import annotations

import os
from _thread import allocate_lock
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias, cast

from oplet.errors import LimitError, ModelError, StateError
from oplet_lm.bundle import Bundle
from oplet_lm.executor import Executor
from oplet_lm.metadata import Sampling, Token
from oplet_lm.sampler import Sampler, Stops
from oplet_lm.template import Message, render
from oplet_lm.tokenizer import TextStream, Tokenizer

__all__ = ["Answer", "Bundle", "LanguageModel", "Sampling"]

#: What a conversation is: a text, which is given to the model as it is, or messages, which the bundle's chat template makes a text of.
Prompt: TypeAlias = "str | Sequence[Message]"
#: By what an answer ends, see `Answer`; and what generates one: tokens of its text, and at last its ending with those left out of the text.
Ending: TypeAlias = Literal["stop", "length", "context"]
Run: TypeAlias = Iterator[tuple[list[int], "Ending | None"]]
#: Parameters of sampling that are no integers.
_REAL = {"top_p", "temperature"}


class Answer(str):
    """The text that a model generates.

    Attributes:
        tokens: the ids of its tokens, without the stop sequence. Where the text ended by "length" or "context", the last ones are not in the
            text if a stop sequence may begin with them.
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
        self._streams, self._lock = 0, allocate_lock()

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
                takes the most likely tokens. Where the bundle has none, a `temperature` or `top_p` draws from all tokens.

        Raises:
            LimitError: the prompt fills the context.
            ModelError: the bundle has no chat template for messages, or a damaged one.
            ValueError: one of the numbers is negative, or `max_tokens`, `top_k` or `seed` no integer; the prompt is neither text nor messages.
        """
        sampling = {"top_k": top_k, "top_p": top_p, "temperature": temperature, "seed": seed}
        *pieces, (left_out, ending) = self._run(prompt, max_tokens, **sampling)
        tokens = [token for piece, _ in pieces for token in piece]
        answer = Answer(self.tokenizer.decode(tokens))
        answer.tokens, answer.ended_by = tokens + left_out, cast(Ending, ending)
        return answer

    def stream(self, prompt: Prompt, *, max_tokens: int | None = None, **sampling: float | None) -> Iterator[str]:
        """Return an iterator over pieces of the answer's text, as they are generated; the arguments are those of `generate`.

        Raises:
            LimitError: the prompt fills the context; or, from the iterator, the context is full before the answer ends.
            StateError: from the iterator: another answer was begun meanwhile.
        """
        return self._texts(self._run(prompt, max_tokens, **sampling))

    def _texts(self, run: Run) -> Iterator[str]:
        text, ending = TextStream(self.tokenizer), None
        for tokens, ending in run:
            if piece := text.add([] if ending else tokens, last=ending is not None):
                yield piece
        if ending == "context":
            raise LimitError(f"The context of {self.context} tokens is full before the answer ends; begin a new conversation.")

    def encode(self, prompt: Prompt) -> list[int]:
        """Return the token ids of a prompt, with the start token if the model has one; raises the errors of `render`."""
        tokens = self.tokenizer.encode(prompt if isinstance(prompt, str) else self.render(prompt))
        start = list(self._ids(self.metadata.start or ()))
        return tokens if tokens[: len(start)] == start else start + tokens

    def render(self, messages: Sequence[Message]) -> str:
        """Apply the bundle's chat template to messages; return the text.

        Raises:
            ModelError: the bundle has no chat template, or the template fails.
            LimitError: the template takes too long, or its text is too long.
            ValueError: a message has no role or content.
        """
        given = messages if isinstance(messages, (list, tuple)) else [None]
        if not all(isinstance(each, dict) and "role" in each and "content" in each for each in given):
            raise ValueError('Give a text, or messages with a "role" and a "content" each: [{"role": "user", "content": "Hi"}].')
        if not self.metadata.template:
            raise ModelError(f"'{self.bundle.path}' has no chat template; give the prompt as a text.")
        start, stop = self._text(self.metadata.start or ""), self._text(*self.metadata.stops[:1])
        variables = {"add_generation_prompt": True, "bos_token": start, "eos_token": stop}
        return render(self.metadata.template, messages, variables)

    @property
    def copied_bytes(self) -> int:
        """The bytes of KV caches that steps have copied so far; 0 where the model updates them in place."""
        return self._executor.copied_bytes

    def _run(self, prompt: Prompt, most: int | None, **sampling: float | None) -> Run:
        """Return what generates an answer of `most` tokens."""
        chosen = {name: value for name, value in sampling.items() if value is not None}
        for name, value in [("max_tokens", most or 0), *chosen.items()]:
            if not isinstance(value, Real if name in _REAL else Integral) or not 0 <= value < float("inf"):
                raise ValueError(f"{name} is {value!r}; give {'a number' if name in _REAL else 'an integer'} from 0 on.")
        usual = self.metadata.sampling
        if usual == Sampling() and chosen.keys() & _REAL:  # the bundle says nothing, and the caller wants draws
            usual = Sampling(top_k=0)
        sampler = Sampler(replace(usual, **chosen), self.metadata.suppressed)  # type: ignore[arg-type]
        tokens = self.encode(prompt)
        if not tokens:
            raise ModelError("The prompt has no token, and the model has no start token; give another text.")
        if (room := self.context - len(tokens)) <= 0:
            raise LimitError(
                f"The prompt has {len(tokens)} tokens, and the model room for {self.context} with its answer; give a shorter one."
            )
        self._streams += 1  # answers that are being given end now
        count = room if most is None else min(most, room)
        ended: Ending = "length" if count == most else "context"
        return self._steps(tokens, count, ended, sampler, self._streams, isinstance(prompt, str))

    def _steps(self, prompt: list[int], most: int, ended: Ending, sample: Sampler, stream: int, anew: bool) -> Run:
        run: Callable[..., Any] = self._executor.read
        given: tuple[Any, ...] = (prompt, anew)
        held: list[int] = []  # tokens that may be the beginning of a stop sequence
        for _ in range(most):
            with self._lock:  # threads take turns
                if stream != self._streams:
                    raise StateError("Another answer was begun meanwhile; a LanguageModel gives one after the other.")
                token = sample(run(*given))
            run, given = self._executor.decode, (token,)
            held.append(token)
            if ending := self._stops.ending(held):
                yield held[:-ending], None
                yield [], "stop"
                return
            if certain := len(held) - self._stops.begun(held):
                yield held[:certain], None
                del held[:certain]
        yield held, ended

    def _ids(self, token: Token) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(token)) if isinstance(token, str) else token

    def _text(self, token: Token = "") -> str:
        return token if isinstance(token, str) else self.tokenizer.decode(token)
