"""Variables and steps of optimizers change what TensorFlow's change, several steps in a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from plugins.flex_ops.tests.agreement import ops_of, resolver
from plugins.flex_ops.tests.nodedefs import flex_options

from oplet import Interpreter, TensorType
from oplet.errors import OpletError
from oplet.model.builders.model_builder import ModelBuilder

Array = NDArray[Any]

#: The variables and the other inputs of each step, and its flags.
STEPS: dict[str, tuple[str, str, list[str]]] = {
    "ResourceApplyGradientDescent": ("var", "alpha delta", []),
    "ResourceApplyMomentum": ("var accum", "lr grad momentum", ["use_nesterov"]),
    "ResourceApplyKerasMomentum": ("var accum", "lr grad momentum", ["use_nesterov"]),
    "ResourceApplyAdam": ("var m v", "beta1_power beta2_power lr beta1 beta2 epsilon grad", ["use_nesterov"]),
    "ResourceApplyAdamWithAmsgrad": ("var m v vhat", "beta1_power beta2_power lr beta1 beta2 epsilon grad", []),
    "ResourceApplyAdaMax": ("var m v", "beta1_power lr beta1 beta2 epsilon grad", []),
    "ResourceApplyAdagrad": ("var accum", "lr grad", ["update_slots"]),
    "ResourceApplyAdagradV2": ("var accum", "lr epsilon grad", ["update_slots"]),
    "ResourceApplyAdadelta": ("var accum accum_update", "lr rho epsilon grad", []),
    "ResourceApplyRMSProp": ("var ms mom", "lr rho momentum epsilon grad", []),
    "ResourceApplyCenteredRMSProp": ("var mg ms mom", "lr rho momentum epsilon grad", []),
    "ResourceApplyAddSign": ("var m", "lr alpha sign_decay beta grad", []),
    "ResourceApplyPowerSign": ("var m", "lr logbase sign_decay beta grad", []),
    "ResourceApplyFtrl": ("var accum linear", "grad lr l1 l2 lr_power", ["multiply_linear_by_lr"]),
    "ResourceApplyFtrlV2": ("var accum linear", "grad lr l1 l2 l2_shrinkage lr_power", ["multiply_linear_by_lr"]),
    "ResourceApplyProximalGradientDescent": ("var", "alpha l1 l2 delta", []),
    "ResourceApplyProximalAdagrad": ("var accum", "lr l1 l2 grad", []),
    "ResourceSparseApplyMomentum": ("var accum", "lr grad indices momentum", ["use_nesterov"]),
    "ResourceSparseApplyKerasMomentum": ("var accum", "lr grad indices momentum", ["use_nesterov"]),
    "ResourceSparseApplyAdagradV2": ("var accum", "lr epsilon grad indices", ["update_slots"]),
}
SCALARS = {
    "alpha": 0.3, "lr": 0.2, "momentum": 0.8, "beta1_power": 0.9, "beta2_power": 0.99, "beta1": 0.9, "beta2": 0.99, "epsilon": 0.01,
    "rho": 0.9, "sign_decay": 0.7, "beta": 0.8, "logbase": 1.3, "l1": 0.05, "l2": 0.1, "l2_shrinkage": 0.2, "lr_power": -0.5,
}  # fmt: skip
#: What changes other variables; the value has the rows of the indices.
SCATTERS = ["Add", "Sub", "Mul", "Div", "Min", "Max", "Update"]


class Session:
    """A model that assigns variables, runs one operator on them and reads them again."""

    def __init__(
        self, op: str, attributes: dict[str, Any], variables: list[Array], given: list[Array], outputs: list[TensorType]
    ) -> None:
        types = [TensorType[each.dtype.name.upper()] for each in variables]
        builder = ModelBuilder("variables")
        for number in range(2):  # the first assigns, the second runs
            graph = builder.add_subgraph(("assign", "run")[number])
            handles = []
            for place, type in enumerate(types):
                handles.append(graph.add_tensor(f"handle{place}", TensorType.RESOURCE, []))
                named = {"container": "c", "shared_name": f"variable{place}", "dtype": type, "shape": None}
                graph.add_operator("FlexVarHandleOp", [], handles[-1:], custom_options=flex_options("VarHandleOp", named))
            fed = variables if number == 0 else given
            inputs = [
                graph.add_tensor(f"input{place}", TensorType[each.dtype.name.upper()], each.shape)
                for place, each in enumerate(fed)
            ]
            made: list[int] = []
            if number == 0:
                for handle, value, type in zip(handles, inputs, types):
                    options = flex_options("AssignVariableOp", {"dtype": type, "validate_shape": False})
                    graph.add_operator("FlexAssignVariableOp", [handle, value], [], custom_options=options)
            else:
                made = [graph.add_tensor(f"output{place}", type, [1]) for place, type in enumerate(outputs)]
                graph.add_operator(f"Flex{op}", [*handles, *inputs], made, custom_options=flex_options(op, attributes))
                for place, (handle, type) in enumerate(zip(handles, types)):
                    made.append(graph.add_tensor(f"value{place}", type, [1]))
                    options = flex_options("ReadVariableOp", {"dtype": type})
                    graph.add_operator("FlexReadVariableOp", [handle], made[-1:], custom_options=options)
            graph.set_inputs(*inputs)
            graph.set_outputs(*made)
            builder.add_signature(
                ("assign", "run")[number],
                {f"input{place}": tensor for place, tensor in enumerate(inputs)},
                {f"output{place}": tensor for place, tensor in enumerate(made)},
                number,
            )
        self.interpreter = Interpreter(model_content=builder.to_bytes(), op_resolver=resolver(), plugins=[])
        self._call("assign", variables)

    def _call(self, key: str, values: list[Array]) -> list[Array]:
        made = self.interpreter.get_signature_runner(key)(**{f"input{place}": each for place, each in enumerate(values)})
        return [made[f"output{place}"] for place in range(len(made))]

    def run(self, given: list[Array]) -> list[Array]:
        """The operator's outputs and then the variables' values."""
        return self._call("run", given)


def numpy_type(name: str) -> Any:
    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return np.dtype(name)


def operands(names: str, type: Any, sparse: bool, seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    found = []
    for name in names.split():
        if name in ("grad", "delta"):
            found.append(rng.normal(size=(3, 2) if sparse else (4, 2)).astype(type))
        elif name == "indices":
            found.append(np.array([3, 0, 3], "int32"))
        else:
            found.append(np.array(SCALARS[name]).astype(type))
    return found


@pytest.mark.parametrize("op", STEPS)
def test_steps_change_variables_as_tensorflow_s(op: str) -> None:
    tf = pytest.importorskip("tensorflow")
    held, others, flags = STEPS[op]
    sparse = "indices" in others
    names = ["float32", "float64", "float16"] if "Proximal" not in op else ["float32", "float64"]
    for type_name in names[: 2 if sparse else 3]:
        type = numpy_type(type_name)
        for flag in (False, True) if flags else (False,):
            attributes = {"T": TensorType[type_name.upper()], "use_locking": False, **dict.fromkeys(flags, flag)}
            if sparse:
                attributes["Tindices"] = TensorType.INT32
            start = [np.abs(np.random.default_rng(s).normal(size=(4, 2)) + 0.1).astype(type) for s in range(len(held.split()))]
            kept = {name: tf.Variable(value) for name, value in zip(held.split(), start)}
            session = Session(op, attributes, start, operands(others, type, sparse, 0), [])
            for step in range(3):
                given = operands(others, type, sparse, step)
                found = session.run(given)
                arguments = {name: variable.handle for name, variable in kept.items()}
                getattr(tf.raw_ops, op)(**arguments, **dict(zip(others.split(), given)), **dict.fromkeys(flags, flag))
                for name, value in zip(held.split(), found):
                    tolerance = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-12}[type_name]
                    np.testing.assert_allclose(
                        value.astype(float),
                        kept[name].numpy().astype(float),
                        rtol=tolerance,
                        atol=tolerance,
                        err_msg=f"{type_name} {name}",
                    )


@pytest.mark.parametrize("op", [f"ResourceScatter{name}" for name in SCATTERS])
def test_rows_of_variables_change_as_tensorflow_s(op: str) -> None:
    tf = pytest.importorskip("tensorflow")
    for type in ("float32", "float64", "int32"):
        rng = np.random.default_rng(0)
        start = [(9 * rng.normal(size=(5, 3))).astype(type)]
        updates = (1 + 3 * rng.uniform(size=(2, 2, 3))).astype(type)
        indices = np.array([[1, 4], [1, 0]] if op != "ResourceScatterUpdate" else [[1, 4], [2, 0]])
        types = {"dtype": TensorType[type.upper()], "Tindices": TensorType.INT64}
        variable = tf.Variable(start[0])
        getattr(tf.raw_ops, op)(resource=variable.handle, indices=indices, updates=updates)
        [found] = Session(op, types, start, [indices, updates], []).run([indices, updates])
        np.testing.assert_allclose(found, variable.numpy(), rtol=1e-6)
        rows = np.array([4, 4, 0])
        given = {"dtype": TensorType[type.upper()], "Tindices": TensorType.INT64}
        gathered, _ = Session("ResourceGather", given, start, [rows], [types["dtype"]]).run([rows])
        np.testing.assert_array_equal(gathered, start[0][rows])


def test_variables_are_assigned_changed_and_asked_about() -> None:
    start, change = [np.arange(6.0).reshape(2, 3)], np.full((2, 3), 0.5)
    types = {"dtype": TensorType.FLOAT64}
    for op, wanted in (
        ("AssignAddVariableOp", start[0] + 0.5),
        ("AssignSubVariableOp", start[0] - 0.5),
        ("AssignVariableOp", change),
    ):
        session = Session(op, types, start, [change], [])
        np.testing.assert_array_equal(session.run([change])[0], wanted)
    shape, _ = Session("VariableShape", {"out_type": TensorType.INT32}, start, [], [TensorType.INT32]).run([])
    assert shape.tolist() == [2, 3]
    there, _ = Session("VarIsInitializedOp", {}, start, [], [TensorType.BOOL]).run([])
    assert there.item() is True
    with pytest.raises(OpletError, match="before anything is assigned"):
        Session("DestroyResourceOp", {"ignore_lookup_error": True}, start, [], []).run([])


def test_variables_belong_to_their_interpreter() -> None:
    first, second = (Session("AssignAddVariableOp", {"dtype": TensorType.FLOAT32}, [value], [value], []) for value in ONES)
    first.run([ONES[0]])
    assert second.run([ONES[0]])[0].tolist() == [6.0, 6.0]
    assert first.run([ONES[0]])[0].tolist() == [3.0, 3.0]


ONES = [np.ones(2, "float32"), np.full(2, 5, "float32")]


@pytest.mark.parametrize(
    ("op", "attributes", "given", "sentence"),
    [
        ("AssignAddVariableOp", {"dtype": TensorType.FLOAT32}, [np.ones(3, "float32")], "has the shape [2]"),
        ("AssignAddVariableOp", {"dtype": TensorType.FLOAT64}, [np.ones(2)], "is of type FLOAT32, not FLOAT64"),
        ("ResourceScatterAdd", {"dtype": TensorType.FLOAT32, "Tindices": TensorType.INT32},
         [np.array([2], "int32"), np.ones(1, "float32")], "the index 2 is outside of the 2 rows"),
        ("ResourceApplyGradientDescent", {"T": TensorType.FLOAT32}, [np.array(1, "float32"), np.ones(3, "float32")],
         "the gradient"),
    ],
)  # fmt: skip
def test_what_does_not_fit_a_variable_is_refused(op: str, attributes: dict[str, Any], given: list[Array], sentence: str) -> None:
    with pytest.raises(OpletError) as refused:
        Session(op, attributes, [ONES[0]], given, []).run(given)
    assert sentence in str(refused.value)


def test_every_operator_with_variables_is_tried() -> None:
    of_variables = ops_of("gradients", "variables", "optimizers")
    tried = {"AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp", "DestroyResourceOp", "ReadVariableOp",
             "ResourceGather", "VarHandleOp", "VarIsInitializedOp", "VariableShape"}  # fmt: skip
    assert of_variables == tried | set(STEPS) | {f"ResourceScatter{name}" for name in SCATTERS}
