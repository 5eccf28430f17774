"""LSH_PROJECTION, the fingerprint behind it, and SKIP_GRAM."""

from __future__ import annotations

import numpy as np
import pytest

from oplet import Interpreter, TensorType
from oplet.errors import PrepareError
from oplet.schema.enums import LSHProjectionType
from oplet.schema.options import LSHProjectionOptions, SkipGramOptions
from oplet_builtin_ops.arithmetic.farmhash import fingerprint64
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


def test_fingerprints_never_change():
    assert fingerprint64(b"") == 0x9AE16A3B2F90404F
    assert fingerprint64(b"a") == 0xB3454265B6DF75E3


def projection(items, weights, kind, seeds):
    inputs = [seeds, Spec(items.dtype, items.shape)] + ([] if weights is None else [weights])
    size = seeds.size if kind == LSHProjectionType.DENSE else len(seeds)
    return one_op_model("LSH_PROJECTION", inputs, [Spec("int32", [size])], LSHProjectionOptions(type=kind))


@pytest.mark.parametrize("kind", [LSHProjectionType.SPARSE, LSHProjectionType.DENSE])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("width", [1, 2, 3, 5, 12, 13, 28, 29, 60, 61, 63, 64, 124, 125, 200])
def test_projections_agree_with_litert_for_items_of_any_size(litert, kind, weighted, width):
    rng = np.random.default_rng(width)
    items = rng.integers(-128, 128, (5, width)).astype(np.int8)
    weights = rng.normal(size=5).astype(np.float32) if weighted else None
    model = projection(items, weights, kind, rng.normal(size=(3, 11)).astype(np.float32))
    np.testing.assert_array_equal(run_op(model, items)[0], litert(model, items)[0])


@pytest.mark.parametrize("bits", [31, 32])
def test_the_longest_hashes_agree_with_litert(litert, bits):
    items = np.arange(6, dtype=np.int32)
    model = projection(items, None, LSHProjectionType.SPARSE, np.random.default_rng(0).normal(size=(3, bits)).astype(np.float32))
    np.testing.assert_array_equal(run_op(model, items)[0], litert(model, items)[0])


@pytest.mark.parametrize(
    ("kind", "bits", "message"), [(LSHProjectionType.UNKNOWN, 4, "SPARSE or DENSE"), (LSHProjectionType.DENSE, 33, "33 bits")]
)
def test_projections_that_do_not_exist_are_refused(kind, bits, message):
    items = np.arange(6, dtype=np.int32)
    with pytest.raises(PrepareError, match=message):
        run_op(projection(items, None, kind, np.zeros((2, bits), np.float32)), items)


SENTENCES = [b"the quick brown fox jumps", b"one", b"  two  words \t and\nmore  ", b"", b"a b", b" x"]


def skip_gram(size, skipped, everything):
    options = SkipGramOptions(ngram_size=size, max_skip_size=skipped, include_all_ngrams=everything)
    return one_op_model("SKIP_GRAM", [Spec("str", [1])], [Spec("str", [1])], options)


def test_words_are_skipped_up_to_the_limit():
    (result,) = run_op(skip_gram(2, 1, False), np.array([b"a b c d"], object))
    assert result.tolist() == [b"a b", b"a c", b"b c", b"b d", b"c d"]


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("skipped", [-1, 0, 1, 3])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_skip_grams_agree_with_litert(litert, size, skipped, everything):
    model = skip_gram(size, skipped, everything)
    for sentence in SENTENCES:
        feed = np.array([sentence], object)
        assert run_op(model, feed)[0].tolist() == litert(model, feed)[0].tolist(), sentence


def test_variants_are_not_projected():
    inputs = [np.ones((2, 2), np.float32), Spec(TensorType.VARIANT, [3])]
    model = one_op_model("LSH_PROJECTION", inputs, [Spec("int32", [2])], LSHProjectionOptions(type=1))
    with pytest.raises(PrepareError, match="VARIANT.* must hold numbers"):
        Interpreter(model_content=model).allocate_tensors()
