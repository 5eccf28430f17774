# Made by `python -m scripts.stubs` of the table in __init__.py.
from oplet.testing.contract import Contract as Contract
from oplet.testing.delegate_contract import DelegateContract as DelegateContract
from oplet.testing.graphs import Graph as Graph
from oplet.testing.graphs import Op as Op
from oplet.testing.graphs import graph_model as graph_model
from oplet.testing.one_op import Spec as Spec
from oplet.testing.one_op import call_op as call_op
from oplet.testing.one_op import invoke as invoke
from oplet.testing.one_op import one_op_model as one_op_model
from oplet.testing.one_op import run_op as run_op
from oplet.testing.op_contract import OpContract as OpContract
from oplet.testing.wrapping_delegate import WrappingDelegate as WrappingDelegate
