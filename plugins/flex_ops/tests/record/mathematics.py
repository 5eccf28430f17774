"""Models of linear algebra, signals, random numbers, and nets in double and half precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from plugins.flex_ops.tests.record import recording


def record_all() -> None:
    """Record the models of this module."""
    _linear_algebra()
    _signals()
    _random()
    _precision()
    _state()


def _noise(*shape: int, seed: int = 0, type: str = "float32") -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(type)


def record(name: str, function: Any, calls: Any, **options: Any) -> None:
    """As `recording.record`; what is not on the converter's list of Flex operators becomes a custom op of its own name."""
    converter = {"allow_custom_ops": True, **options.pop("converter", {})}
    recording.record(name, function, calls, converter=converter, **options)


def _linear_algebra() -> None:
    import tensorflow as tf

    def least_squares(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        q, r = tf.linalg.qr(x)
        gram = tf.matmul(x, x, transpose_a=True)
        factor = tf.linalg.cholesky(gram)
        return {
            "by_qr": tf.linalg.triangular_solve(r, tf.matmul(q, y, transpose_a=True), lower=False),
            "by_cholesky": tf.linalg.cholesky_solve(factor, tf.matmul(x, y, transpose_a=True)),
            "by_lstsq": tf.linalg.lstsq(x, y, l2_regularizer=0.1),
            "determinant": tf.linalg.logdet(gram),
        }

    record("least_squares", least_squares, [{"x": _noise(8, 3, seed=s), "y": _noise(8, 2, seed=9)} for s in range(2)])

    def whitening(x: tf.Tensor) -> dict[str, tf.Tensor]:
        centred = x - tf.reduce_mean(x, axis=1, keepdims=True)
        covariance = tf.matmul(centred, centred, transpose_a=True) / 8.0 + 0.1 * tf.eye(4)
        values, vectors = tf.linalg.eigh(covariance)
        root = tf.matmul(vectors * tf.math.rsqrt(values)[:, None, :], vectors, transpose_b=True)
        return {"white": tf.matmul(centred, root), "values": values, "trace": tf.linalg.trace(covariance)}

    record("whitening", whitening, [{"x": _noise(2, 9, 4, seed=s)} for s in range(2)])

    def kalman(state: tf.Tensor, covariance: tf.Tensor, seen: tf.Tensor) -> dict[str, tf.Tensor]:
        motion, view = tf.constant([[1.0, 0.1], [0.0, 1.0]]), tf.constant([[1.0, 0.0]])
        state = tf.linalg.matvec(motion, state)
        covariance = motion @ covariance @ tf.transpose(motion) + 0.01 * tf.eye(2)
        gain = covariance @ tf.transpose(view) @ tf.linalg.inv(view @ covariance @ tf.transpose(view) + 0.5)
        state += tf.linalg.matvec(gain, seen - tf.linalg.matvec(view, state))
        return {"state": state, "covariance": (tf.eye(2) - gain @ view) @ covariance}

    call = {"state": _noise(2), "covariance": np.eye(2, dtype="float32"), "seen": _noise(1, seed=1)}
    record("kalman_filter", kalman, [call])

    def matrices(x: tf.Tensor) -> dict[str, tf.Tensor]:
        square = 0.2 * x + tf.eye(4, batch_shape=[2])
        lu, order = tf.linalg.lu(square)
        return {
            "exponential": tf.linalg.expm(0.3 * x), "root": tf.linalg.sqrtm(square), "solved": tf.linalg.solve(square, x, adjoint=True),
            "lu": lu, "order": order, "det": tf.linalg.det(square), "band": tf.linalg.band_part(x, 1, 0),
            "diagonals": tf.linalg.diag_part(x, k=(-1, 1), align="LEFT_RIGHT"),
            "set": tf.linalg.set_diag(x, 9 * tf.ones([2, 3]), k=1), "made": tf.linalg.diag(x[:, 0], k=-1, num_rows=6),
            "tridiagonal": tf.linalg.tridiagonal_solve(tf.stack([x[0, 0], 4 + x[0, 1], x[0, 2]]), x[0], diagonals_format="compact"),
            "cross": tf.linalg.cross(x[..., :3], x[..., 1:]),
        }  # fmt: skip

    record("functions_of_matrices", matrices, [{"x": _noise(2, 4, 4, seed=s)} for s in range(2)])

    def svd(x: tf.Tensor) -> dict[str, tf.Tensor]:
        s, u, v = tf.linalg.svd(x)
        inverse = tf.matmul(v / s[..., None, :], u, transpose_b=True)
        return {
            "values": s,
            "pseudo_inverse": inverse,
            "rank_one": s[..., :1, None] * u[..., :1] * tf.linalg.matrix_transpose(v[..., :1]),
        }

    record("svd_under_its_own_name", svd, [{"x": _noise(2, 5, 3)}])


def _signals() -> None:
    import tensorflow as tf

    def cepstrum(x: tf.Tensor) -> dict[str, tf.Tensor]:
        spectrum = tf.signal.stft(x, 64, 32)
        magnitude = tf.abs(spectrum)
        weights = tf.signal.linear_to_mel_weight_matrix(8, 33, 8000)
        logarithm = tf.math.log(tf.matmul(magnitude, weights) + 1e-6)
        return {"cepstrum": tf.signal.mfccs_from_log_mel_spectrograms(logarithm), "phase": tf.math.angle(spectrum[..., 1:-1])}

    record("cepstrum", cepstrum, [{"x": _noise(2, 300, seed=s)} for s in range(2)])

    def filtered(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        # Of a real signal made complex, the converter writes a RFFT2D of half the values and a reshape that does not fit them.
        spectrum = tf.signal.fft(tf.complex(x, y))
        response = tf.complex(tf.linspace(1.0, 0.0, 32), tf.linspace(0.0, 0.5, 32))
        return {
            "filtered": tf.math.real(tf.signal.ifft(spectrum * response)), "power": tf.math.real(spectrum * tf.math.conj(spectrum)),
            "imaginary": tf.math.imag(spectrum), "shifted": tf.math.real(tf.signal.fftshift(spectrum)),
        }  # fmt: skip

    record("filter_by_fft", filtered, [{"x": _noise(3, 32, seed=s), "y": _noise(3, 32, seed=9)} for s in range(2)])

    def picture(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        product = tf.signal.rfft2d(x) * tf.math.conj(tf.signal.rfft2d(y))
        volume = tf.signal.fft3d(tf.cast(tf.stack([x, y]), tf.complex64))
        return {"correlation": tf.signal.irfft2d(product), "volume": tf.abs(volume), "turned": tf.abs(tf.linalg.adjoint(product))}

    record("correlation_of_pictures", picture, [{"x": _noise(8, 8), "y": _noise(8, 8, seed=1)}])

    def double(x: tf.Tensor) -> dict[str, tf.Tensor]:
        spectrum = tf.signal.rfft(x)
        return {
            "spectrum": tf.abs(spectrum),
            "back": tf.signal.irfft(spectrum * tf.complex(tf.constant(0.5, tf.float64), tf.constant(0.0, tf.float64))),
        }

    record("fourier_in_double", double, [{"x": _noise(2, 16, type="float64")}])

    def sound(x: tf.Tensor) -> dict[str, tf.Tensor]:
        spectrogram = tf.raw_ops.AudioSpectrogram(input=x, window_size=128, stride=64, magnitude_squared=True)
        return {"mfcc": tf.raw_ops.Mfcc(spectrogram=spectrogram, sample_rate=8000, dct_coefficient_count=10)}

    record("audio_front_end", sound, [{"x": _noise(700, 1)}])


def _random() -> None:
    import tensorflow as tf

    def stateless(seed: tf.Tensor, x: tf.Tensor) -> dict[str, tf.Tensor]:
        keep = tf.cast(tf.random.stateless_uniform([3, 4], seed) > 0.5, tf.float32)
        return {
            "dropped": x * keep * 2.0, "noisy": x + tf.random.stateless_normal([3, 4], seed + 1),
            "cut": tf.random.stateless_truncated_normal([9], seed), "integers": tf.random.stateless_uniform([5], seed, 0, 100, tf.int64),
            "classes": tf.random.stateless_categorical(x, 6, seed), "full": tf.random.stateless_uniform([3], seed, None, None, tf.uint32),
        }  # fmt: skip

    calls = [{"seed": np.array(seed, "int32"), "x": _noise(3, 4)} for seed in ([1, 2], [-5, 7])]
    record("stateless_random", stateless, calls)

    def drawn(x: tf.Tensor) -> dict[str, tf.Tensor]:
        tf.random.set_seed(3)
        return {
            "noisy": x + tf.raw_ops.RandomStandardNormal(shape=tf.shape(x), dtype=tf.float64, seed=4, seed2=5),
            "cut": tf.raw_ops.TruncatedNormal(shape=[7], dtype=tf.float32, seed=6, seed2=7),
            "integers": tf.raw_ops.RandomUniformInt(shape=[4], minval=-3, maxval=9, seed=8, seed2=9),
            "shuffled": tf.raw_ops.RandomShuffle(value=x, seed=10, seed2=11),
        }

    record("random_with_seeds", drawn, [{"x": _noise(5, 2, type="float64")}] * 3)


def _precision() -> None:
    import tensorflow as tf

    weights = {name: _noise(*shape, seed=number, type="float64") * 0.3 for number, (name, shape) in enumerate(
        {"first": (3, 3, 2, 4), "depth": (3, 3, 4, 1), "dense": (36, 5), "bias": (4,)}.items())}  # fmt: skip

    def net(x: tf.Tensor, kind: tf.DType) -> dict[str, tf.Tensor]:
        w = {name: tf.constant(value, kind) for name, value in weights.items()}
        y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w["first"], 1, "SAME"), w["bias"]))
        y = tf.nn.depthwise_conv2d(y, w["depth"], [1, 1, 1, 1], "SAME")
        y = tf.nn.max_pool2d(tf.nn.elu(y), 2, 2, "VALID") + tf.nn.avg_pool2d(tf.nn.softplus(y), 2, 2, "VALID")
        y = tf.matmul(tf.reshape(y, [-1, 36]), w["dense"])
        return {
            "classes": tf.nn.softmax(y),
            "logarithms": tf.nn.log_softmax(y),
            "norm": tf.norm(y, axis=-1),
            "best": tf.argmax(y, -1),
        }

    record("net_in_double", lambda x: net(x, tf.float64), [{"x": _noise(2, 6, 6, 2, seed=s, type="float64")} for s in range(2)])

    def elementary(x: tf.Tensor) -> dict[str, tf.Tensor]:
        positive = tf.abs(x) + 0.1
        return {
            "one": tf.sinh(x) - tf.math.expm1(x) * tf.math.log1p(positive), "two": tf.math.erf(x) + tf.math.erfc(x) * tf.atan2(x, positive),
            "three": tf.math.lgamma(positive) + tf.math.digamma(positive) + tf.math.igamma(positive, positive + 1),
            "four": tf.math.betainc(positive, positive + 1, tf.sigmoid(x)), "five": tf.math.xlogy(x, positive) + tf.math.xdivy(x, positive),
            "sum": tf.reduce_sum(x, 0), "mean": tf.reduce_mean(x, [0, 1]), "product": tf.reduce_prod(x, -1), "most": tf.reduce_max(x, 0, True),
            "running": tf.cumsum(x, 1, exclusive=True, reverse=True), "together": tf.math.cumulative_logsumexp(x, 0),
            "cast": tf.cast(x * 10, tf.uint16), "rounded": tf.round(x * 3), "clipped": tf.clip_by_value(x, -0.5, 0.5),
            "finite": tf.math.is_finite(x / (x - x[0])), "spread": tf.math.reduce_std(x, 1),
        }  # fmt: skip

    calls = [{"x": np.abs(_noise(3, 4, type="float64"))}, {"x": np.abs(_noise(3, 4, seed=1, type="float64"))}]
    record("elementary_functions_in_double", elementary, calls)

    def special(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "i": tf.math.bessel_i0(x) + tf.math.bessel_i1e(x), "j": tf.math.special.bessel_j0(x) + tf.math.special.bessel_j1(x),
            "k": tf.math.special.bessel_k0(x) * tf.math.special.bessel_k1e(x), "y": tf.math.special.bessel_y0(x),
            "dawson": tf.math.special.dawsn(x), "expint": tf.math.special.expint(x), "spence": tf.math.special.spence(x),
            "fresnel": tf.math.special.fresnel_cos(x) - tf.math.special.fresnel_sin(x), "erfinv": tf.math.erfinv(x / 3),
            "quantile": tf.math.ndtri(x / 3), "zeta": tf.math.zeta(x + 1, x), "polygamma": tf.math.polygamma(2 * tf.ones_like(x), x),
        }  # fmt: skip

    calls = [{"x": np.random.default_rng(0).uniform(0.1, 2.9, (4, 5)).astype("float32")}]
    record("special_functions", special, calls)

    def half(x: tf.Tensor) -> dict[str, tf.Tensor]:
        w = tf.constant(_noise(6, 4, seed=2) * 0.3, tf.float16)
        y = tf.nn.relu(tf.matmul(tf.cast(x, tf.float16), w))
        return {"sum": tf.cast(tf.round(16 * tf.reduce_sum(y)), tf.int32), "sign": tf.cast(tf.sign(y), tf.int8)}

    record("net_in_half", half, [{"x": _noise(3, 6)}])

    def bits(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "and": tf.bitwise.bitwise_and(x, y), "or": tf.bitwise.bitwise_or(x, y), "not": tf.bitwise.invert(x),
            "left": tf.bitwise.left_shift(x, y % 7), "right": tf.bitwise.right_shift(x, y % 7), "quotient": x // (y | 1),
            "rest": x % (y | 1), "sum": x + y, "less": x < y, "count": tf.raw_ops.PopulationCount(x=x),
        }  # fmt: skip

    numbers = np.random.default_rng(0).integers(0, 2**16, (2, 6), dtype="uint16")
    record("bits_of_unsigned_integers", bits, [{"x": numbers, "y": numbers[:, ::-1].copy()}])

    def products(q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) -> dict[str, tf.Tensor]:
        scores = tf.nn.softmax(tf.einsum("bqhd,bkhd->bhqk", q, k) / tf.sqrt(tf.constant(3.0, tf.float64)))
        return {"attention": tf.einsum("bhqk,bkhd->bqhd", scores, v), "outer": tf.einsum("...i,...j->...ij", q, k)}

    call = {name: _noise(2, 4, 2, 3, seed=seed, type="float64") for seed, name in enumerate("qkv")}
    record("attention_in_double", products, [call])


def _state() -> None:
    import tensorflow as tf

    class Trained(tf.Module):  # type: ignore[misc]
        """A net of convolution, batch norm and pool with RMSProp, whose step the converter leaves to TensorFlow."""

        def __init__(self) -> None:
            super().__init__()
            self.filters = tf.Variable(_noise(3, 3, 1, 4) * 0.3)
            self.scale, self.offset = tf.Variable(tf.ones(4)), tf.Variable(tf.zeros(4))
            self.dense = tf.Variable(_noise(64, 3, seed=1) * 0.1)
            self.all = [self.filters, self.scale, self.offset, self.dense]
            self.slots = [[tf.Variable(tf.zeros_like(each)) for _ in range(2)] for each in self.all]

        def step(self, x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
            with tf.GradientTape() as tape:
                z = tf.nn.conv2d(x, self.filters, 1, "SAME")
                z, _, _ = tf.compat.v1.nn.fused_batch_norm(z, self.scale, self.offset)
                z = tf.nn.max_pool2d(tf.nn.selu(z), 2, 2, "SAME")
                logits = tf.matmul(tf.reshape(z, [-1, 64]), self.dense)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
            for variable, (ms, mom), gradient in zip(self.all, self.slots, tape.gradient(loss, self.all)):
                tf.raw_ops.ResourceApplyRMSProp(
                    var=variable.handle, ms=ms.handle, mom=mom.handle, lr=0.01, rho=0.9, momentum=0.5, epsilon=1e-3, grad=gradient
                )
            return {"loss": loss, "dense": tf.identity(self.dense)}

    trained = Trained()
    calls = [{"x": _noise(4, 8, 8, 1, seed=s), "y": np.array([0, 1, 2, s % 3], "int32")} for s in range(4)]
    record(
        "training_with_rms_prop", trained.step, calls, keep=trained, converter={"experimental_enable_resource_variables": True}
    )
