"""Wherever any of LiteRT's three ways runs an operator, oplet runs it and answers as one of them, for every type, rank and emptiness."""

from __future__ import annotations

import re

import pytest
from tests.kinds import part

pytest.importorskip("ai_edge_litert")

from tests.everywhere.recipes import KINDS, RECIPES, singles
from tests.everywhere.verdicts import contradiction
from tests.everywhere.ways import ask

from oplet_builtin_ops import VERSIONS

_NO_SCALE = "without a scale LiteRT multiplies by 0 or by what is no number, and gives zeros, noise or nothing"
_SLICES = "LiteRT takes a scale for each slice for none at all, and gives zeros, noise or nothing"
_PACKED = "LiteRT takes values of 4 bits, of which two share a byte, for bytes of their own"
_BYTES = "LiteRT does not look at the type of the weights and reads their bytes as another one"
_EMPTY = "LiteRT leaves the output as it was"

#: Where oplet contradicts LiteRT on purpose: a pattern of "name | contradiction", and why.
KNOWN = {
    r"^(HARD_SWISH|LEAKY_RELU|RELU\w*|TANH|SOFTMAX|MUL|DIV|PRELU|SUM|MEAN|BATCH_MATMUL) U?INT\d+\b.*\| refuses": _NO_SCALE,
    r"^DEQUANTIZE U?INT\d+ .*\| refuses": _NO_SCALE,
    r"^\w+ QU?INT\d+ (of|to) slices \| refuses": _SLICES,
    r"^(AVERAGE|MAX)_POOL_2D U?INT\d+ .*activation.*\| differs": "without a scale LiteRT clamps to what was in memory",
    r"^(FULLY_CONNECTED|CONV_2D|DEPTHWISE_CONV_2D) \w+  by U?(Q?U?INT\d+|B?FLOAT\d+)\b.*\| refuses": _BYTES,
    r"^CONV_2D FLOAT32  by QINT2\b.*\| differs": _BYTES,
    r"^CONV_2D FLOAT32  by FLOAT16 FLOAT32 \| differs": _BYTES,
    r"^DEPTHWISE_CONV_2D QINT16  by QINT4\b.*\| differs": _PACKED,
    r"^DEPTHWISE_CONV_2D FLOAT32  by QINT8 FLOAT32 \| differs": "LiteRT reads scales beyond the only one",
    r"^(BITCAST|BROADCAST_TO) .*\bQ?INT4\b.*\| refuses": _PACKED,
    r"^(STABLEHLO_PAD|DILATE) Q?INT4 .*\| differs": _PACKED,
    r"^FAKE_QUANT .*\| refuses": "LiteRT reads the bytes of other types as floats",
    r"^ATAN2 .*\| refuses": "LiteRT compares the ranks only and reads beyond the shorter tensor",
    r"^(EQUAL|NOT_EQUAL|FILL) STRING.*\| differs": "LiteRT's Python gives the address of a scalar string that is fed for its text",
    r"^NOT_EQUAL INT16\b.*\| differs": "LiteRT writes nothing",
    r"^STABLEHLO_SHIFT_LEFT .*\| differs": "what LiteRT gives for shifts by more than 31 or fewer than 0 depends on the length",
    r"^REDUCE_PROD QINT8 \[.*\b0\b.*\| differs": _EMPTY,
    r"^FULLY_CONNECTED \w+ of nothing \| differs": "LiteRT leaves the bias out where the products have no factors",
    r"^(DEPTH_TO_SPACE|(AVERAGE|MAX)_POOL_2D) FLOAT16 \[0,.*\| differs": "XNNPACK writes nothing into the output's shape where there are no values",
    r"^LOG_SOFTMAX QINT8 \[\] \| differs": "LiteRT writes nothing for a scalar",
    r"^MATRIX_(SET_)?DIAG .*\| refuses": "LiteRT moves values of types that it does not know as if they were others",
    r"^STRIDED_SLICE \w+ \[0, .*shrunk \| refuses": "LiteRT reads behind a tensor without values",
    r"^EMBEDDING_LOOKUP QINT16  to floats \| refuses": "LiteRT reads the table as bytes",
}

#: Operators that have no recipe: they call subgraphs, keep resources or hold state, and have tests of their own.
NOT_SWEPT = frozenset(
    [
        "ASSIGN_VARIABLE",
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        "BIDIRECTIONAL_SEQUENCE_RNN",
        "BROADCAST_ARGS",
        "CALL",
        "CALL_ONCE",
        "DENSIFY",
        "EMBEDDING_LOOKUP_SPARSE",
        "HASHTABLE",
        "HASHTABLE_FIND",
        "HASHTABLE_IMPORT",
        "HASHTABLE_LOOKUP",
        "HASHTABLE_SIZE",
        "IF",
        "LSH_PROJECTION",
        "LSTM",
        "MULTINOMIAL",
        "NON_MAX_SUPPRESSION_V4",
        "NON_MAX_SUPPRESSION_V5",
        "RANDOM_STANDARD_NORMAL",
        "RANDOM_UNIFORM",
        "READ_VARIABLE",
        "REDUCE_WINDOW",
        "RNN",
        "SKIP_GRAM",
        "STABLEHLO_CASE",
        "STABLEHLO_COMPOSITE",
        "STABLEHLO_CONVOLUTION",
        "STABLEHLO_CUSTOM_CALL",
        "STABLEHLO_REDUCE",
        "STABLEHLO_REDUCE_WINDOW",
        "STABLEHLO_RNG_BIT_GENERATOR",
        "STABLEHLO_SCATTER",
        "STABLEHLO_SORT",
        "STABLEHLO_WHILE",
        "SVDF",
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "UNIDIRECTIONAL_SEQUENCE_RNN",
        "VAR_HANDLE",
        "WHILE",
    ]
)
#: A quick look: operators of each kind of kernel, with the types that only XNNPACK runs or that have no scale.
QUICK = ("EXP", "SUB", "EQUAL", "MEAN", "RESHAPE", "SPLIT", "TRANSPOSE_CONV")
_KINDS = [kind for kind in KINDS if str(kind) in ("FLOAT32", "FLOAT16", "UINT8", "QINT8")]


def contradictions(op: str, kinds: object = KINDS) -> tuple[list[str], set[str]]:
    """What is not known, and the patterns that were needed."""
    cases = list(singles(op, kinds))  # type: ignore[arg-type]
    needed: set[str] = set()
    for _ in range(2):  # LiteRT is asked again in another process: what it reads of memory that nobody wrote differs by chance
        unknown, doubtful = [], []
        for case, theirs in zip(cases, ask([(case.model, case.feeds) for case in cases])):
            found = contradiction(case, theirs)
            if not found:
                continue
            text = f"{case.name} | {found}"
            matching = {pattern for pattern in KNOWN if re.search(pattern, text)}
            needed |= matching
            if not matching:
                unknown.append(text)
                doubtful.append(case)
        cases = doubtful
        if not cases:
            break
    return unknown, needed


def test_every_operator_is_swept_or_said_not_to_be() -> None:
    assert set(VERSIONS) - set(RECIPES) <= NOT_SWEPT
    assert {op for op in NOT_SWEPT if op in RECIPES and any(True for _ in singles(op, KINDS[:1]))} == set()


@pytest.mark.parametrize("op", QUICK)
def test_oplet_runs_what_litert_runs(op: str) -> None:
    unknown, _ = contradictions(op, _KINDS)
    assert not unknown, "\n".join(unknown)


@pytest.mark.sweep(cases=True)
def test_oplet_runs_whatever_type_rank_and_emptiness_litert_runs() -> None:
    unknown: list[str] = []
    needed: set[str] = set()
    for op in part().among(RECIPES):
        found, patterns = contradictions(op)
        unknown += found
        needed |= patterns
    assert not unknown, "\n".join(unknown)
    by_chance = {
        pattern for pattern, reason in KNOWN.items() if "writes nothing" in reason
    }  # what lies in memory may be the answer
    assert not part().whole or set(KNOWN) - by_chance == needed - by_chance, "these are known contradictions no more"
