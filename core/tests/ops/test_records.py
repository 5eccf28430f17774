"""Records behave as frozen dataclasses do, and take no part of `dataclasses` to be made."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys

import pytest

from oplet import Registration
from oplet.records import Record, Row


class Point(Record):
    x: int
    y: int = 0


class Named(Point):
    name: str = ""


class Loose(Record, frozen=False):
    x: int

    def __post_init__(self) -> None:
        self.double = 2 * self.x


def test_fields_are_given_by_position_or_name_and_default() -> None:
    assert (Point(1).x, Point(1).y, Point(y=3, x=2).y, Named(1, name="a").name) == (1, 0, 3, "a")


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"x": 1}), ((1,), {"z": 1})])
def test_values_that_fit_no_field_are_refused(values: tuple[int, ...], named: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="Point takes .*x.*y once" + (", and there is no z" if "z" in named else r"\.")):
        Point(*values, **named)


def test_records_are_equal_by_class_and_values() -> None:
    assert Point(1, 2) == Point(1, 2) != Point(1, 3)
    assert Point(1, 0) != Named(1, 0)
    assert {Point(1, 2): "a"}[Point(1, 2)] == "a"
    assert repr(Named(1, name="a")) == "Named(x=1, y=0, name='a')"


def test_a_record_does_not_change_unless_it_is_declared_so() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError, match="x of a Point"):
        Point(1).x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del Point(1).x
    loose = Loose(2)
    loose.x = 3
    assert (loose.x, loose.double) == (3, 4)


def test_copies_and_what_dataclasses_offers() -> None:
    point = Named(1, 2, "a")
    assert point.__replace__(y=5) == dataclasses.replace(point, y=5) == Named(1, 5, "a")
    assert copy.copy(point) == pickle.loads(pickle.dumps(point)) == point
    assert dataclasses.asdict(point) == {"x": 1, "y": 2, "name": "a"}
    assert [field.name for field in dataclasses.fields(Registration)][:2] == ["builtin_code", "custom_name"]
    assert dataclasses.replace(Registration(), version=3).version == 3


def test_records_need_no_dataclasses() -> None:
    code = "import sys, oplet.records; print('dataclasses' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"


class Size(Row):
    """Rows and columns."""

    rows: int
    columns: int = 1

    @property
    def size(self) -> int:
        return self.rows * self.columns


def test_rows_are_named_tuples() -> None:
    size = Size(2, columns=3)
    rows, columns = size
    assert (size, rows, columns, size.rows, size.columns, size.size) == ((2, 3), 2, 3, 2, 3, 6)
    assert (Size(2), Size._make([2, 3]), size._replace(rows=4), size._asdict()) == (
        (2, 1),
        (2, 3),
        (4, 3),
        {"rows": 2, "columns": 3},
    )
    assert repr(size) == "Size(rows=2, columns=3)"
    assert pickle.loads(pickle.dumps(size)) == copy.deepcopy(size) == size
    assert not hasattr(size, "__dict__")


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"rows": 1}), ((1,), {"depth": 1})])
def test_values_that_fit_no_field_of_a_row_are_refused(values: tuple[int, ...], named: dict[str, int]) -> None:
    with pytest.raises(
        TypeError, match="Size takes .*rows.*columns once" + (", and there is no depth" if "depth" in named else r"\.")
    ):
        Size(*values, **named)
