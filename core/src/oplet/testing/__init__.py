"""What op and delegate authors test with."""

from oplet.testing.one_op import one_op_model, run_op

__all__ = ["one_op_model", "run_op"]
