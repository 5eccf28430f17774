"""The headers that this package ships state the API as LiteRT's do, its C library is laid out like them, and exports what they declare."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.children import run_child

from oplet import BuiltinOperator
from oplet_native_ops import cflags, include_dir
from oplet_native_ops.shim import layouts
from oplet_native_ops.shim.elf import read_elf
from oplet_native_ops.shim.library import library_path
from oplet_native_ops.values.builtin_data import STRUCTS, fields_of, struct_of, struct_type
from oplet_native_ops.values.types import TYPE_NUMBERS

HERE = Path(__file__).parent
NATIVE = HERE.parent / "native"
LINES = [line for line in (HERE / "c_api.txt").read_text().splitlines() if not line.startswith("#")]
FUNCTIONS = {line[:-2] for line in LINES if line.endswith("()")}
NUMBERS = {name: int(number) for name, number in (line.split() for line in LINES if not line.endswith("()"))}
HEADERS = sorted(path.relative_to(include_dir()).as_posix() for path in include_dir().rglob("*.h"))
#: C++, and complete in themselves.
CPLUSPLUS = [name for name in HEADERS if "/delegates/utils/" in name]


def c_name(name: str) -> str:
    return name if name.startswith(("TfLite", "kTfLite")) else f"TfLite{name}Params"


def expression(name: str) -> str:
    struct, _, field = name.partition(".")
    if field:
        return f"offsetof({c_name(struct)}, {field})"
    return name if name.startswith(("kTfLite", "TfLiteReduceWindowFunction")) else f"sizeof({c_name(name)})"


def test_sizes_offsets_and_numbers_are_litert_s(tmp_path: Path, build_once: Any) -> None:
    lines = [f'  printf("{name} %lld\\n", (long long){expression(name)});' for name in NUMBERS]
    source = tmp_path / "numbers.c"
    source.write_text(
        '#include <stdio.h>\n#include "tflite/c/builtin_op_data.h"\n#include "tflite/c/c_api_opaque.h"\nint main(void) {\n'
        + "\n".join(lines)
        + "\n  return 0;\n}\n"
    )
    program = tmp_path / "numbers"
    run_child(["cc", f"-I{include_dir()}", "-o", str(program), str(source)])
    out = run_child([program]).stdout
    assert {name: int(number) for name, number in (line.split() for line in out.splitlines())} == NUMBERS
    assert len(NUMBERS) > 700


def test_every_function_of_the_api_is_declared_and_exported() -> None:
    declared = set()
    for name in sorted({*HEADERS} - {*CPLUSPLUS}):
        text = re.sub(r"/\*.*?\*/", "", (include_dir() / name).read_text(), flags=re.S)
        text = re.sub(r"^#define(?:.*\\\n)*.*$", "", text, flags=re.M)
        declared |= set(re.findall(r"\b(TfLite\w+)\(", text))
    exported = set(read_elf(str(library_path())).functions)
    assert declared >= FUNCTIONS
    assert declared - {"TfLiteQuantizationClone"} <= exported
    assert len(FUNCTIONS) > 120
    assert "_Z23TfLiteQuantizationCloneRK18TfLiteQuantization" in exported


def test_the_shim_exports_nothing_but_the_api_and_what_python_calls() -> None:
    others = [name for name in read_elf(str(library_path())).functions if not re.match(r"TfLite|oplet_native_|_Z", name)]
    assert set(others) <= {"_init", "_fini"}


def test_what_python_reads_in_place_lies_where_c_has_it() -> None:
    pairs = {"TfLiteTensor": layouts.Tensor, "TfLiteNode": layouts.Node, "TfLiteRegistration": layouts.Registered}
    renamed = {"scale": "params", "quantization_type": "quantization"}
    for name, struct in pairs.items():
        assert ctypes.sizeof(struct) == NUMBERS[name]
        for field, _ in struct._fields_:
            if field in ("zero_point", "quantization"):
                continue  # inside of the one before
            assert getattr(struct, field).offset == NUMBERS[f"{name}.{renamed.get(field, field)}"], field
    for name in STRUCTS:
        struct = struct_type(name)
        assert ctypes.sizeof(struct) == NUMBERS[name]
        for field in fields_of(name):
            assert getattr(struct, field.name).offset == NUMBERS[f"{name}.{field.name}"]


def test_the_c_library_s_own_statement_of_the_layouts_is_that_of_the_headers(tmp_path: Path, build_once: Any) -> None:
    checks = []
    for struct in ("Tensor", "Node", "Registration", "Context", "Delegate", "DelegateParams", "OpaqueDelegateParams"):
        for name in NUMBERS:
            of, _, field = name.partition(".")
            if of == f"TfLite{struct}":
                checks.append(f"offsetof({struct}, {field})" if field else f"sizeof({struct})")
                checks[-1] += f" == {NUMBERS[name]}"
    source = tmp_path / "abi.c"
    source.write_text('#include "abi.h"\n' + "".join(f'_Static_assert({check}, "");\n' for check in checks))
    run_child(["cc", "-std=c11", "-fsyntax-only", f"-I{NATIVE}", str(source)])
    assert len(checks) > 50


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("command", [["cc", "-x", "c", "-std=c11"], ["c++", "-x", "c++", "-std=c++17"]], ids=["c", "c++"])
def test_each_header_compiles_by_itself_without_a_warning(build_once: Any, header: str, command: list[str]) -> None:
    if header in CPLUSPLUS and command[0] == "cc":
        pytest.skip("it is C++")
    done = subprocess.run(
        [*command, "-Wall", "-Wextra", "-Werror", f"-I{include_dir()}", "-fsyntax-only", "-"],
        input=f'#include "{header}"\n',
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr


def test_the_flags_point_to_the_headers_that_are_there() -> None:
    [include] = [flag[2:] for flag in cflags() if flag.startswith("-I")]
    assert (Path(include) / "tensorflow/lite/c/common.h").is_file()
    assert {"-shared", "-fPIC"} <= set(cflags())


def test_numbers_of_types_and_operators_are_the_headers() -> None:
    for type, number in TYPE_NUMBERS.items():
        name = type.name.lower()
        found = [value for key, value in NUMBERS.items() if key.lower() == f"ktflite{name.replace('_', '')}"]
        assert found == [number], type
    for op in BuiltinOperator:
        name = "".join(part.capitalize() for part in op.name.lower().split("_"))
        assert NUMBERS[f"kTfLiteBuiltin{name}"] == op
    assert all(struct_of(op) in {"", *STRUCTS} for op in BuiltinOperator)
