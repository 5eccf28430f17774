"""The package is found where it is installed, and brings each operator in the versions that models have."""

from __future__ import annotations

import pytest

from oplet import MutableOpResolver, PluginManager
from oplet_mediapipe_ops import register_ops


@pytest.mark.parametrize(
    ("op", "versions"),
    [
        ("Convolution2DTransposeBias", [1]),
        ("Landmarks2TransformMatrix", [1, 2]),
        ("LiteRtMaxUnpooling2D", [1]),
        ("MaxPoolingWithArgmax2D", [1]),
        ("MaxUnpooling2D", [1]),
        ("TransformLandmarks", [1, 2]),
        ("TransformTensor", [1]),
        ("TransformTensorBilinear", [1, 2]),
    ],
)
def test_it_serves(op: str, versions: list[int]) -> None:
    resolver = MutableOpResolver()
    register_ops(resolver)
    assert resolver.versions(op) == versions
    for version in versions:
        found = resolver.find_op(op, version)
        assert found is not None
        assert (found.name, found.version, found.pure) == (op, version, True)


def test_pip_installs_it_as_a_plugin() -> None:
    [plugin] = PluginManager(load=["oplet-mediapipe-ops"]).providers("MaxUnpooling2D")
    assert (plugin.name, plugin.distribution) == ("mediapipe_ops", "oplet-mediapipe-ops")
