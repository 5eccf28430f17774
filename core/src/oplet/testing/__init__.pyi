# Made by `python -m scripts.stubs` of the table in __init__.py.
from oplet.testing.chains import chain_graph as chain_graph
from oplet.testing.chains import elementwise as elementwise
from oplet.testing.contract import Contract as Contract
from oplet.testing.delegate_contract import DelegateContract as DelegateContract
from oplet.testing.graphs import Graph as Graph
from oplet.testing.graphs import Op as Op
from oplet.testing.graphs import graph_model as graph_model
from oplet.testing.litert import litert_interpreter as litert_interpreter
from oplet.testing.one_op import Spec as Spec
from oplet.testing.one_op import call_op as call_op
from oplet.testing.one_op import invoke as invoke
from oplet.testing.one_op import invoke_steps as invoke_steps
from oplet.testing.one_op import one_op_model as one_op_model
from oplet.testing.one_op import run_op as run_op
from oplet.testing.op_contract import OpContract as OpContract
from oplet.testing.op_contract import first_failure as first_failure
from oplet.testing.wrapping_delegate import WrappingDelegate as WrappingDelegate
