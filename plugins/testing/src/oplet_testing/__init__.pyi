# Made by `python -m scripts.stubs` of the table in __init__.py.
from oplet_testing.chains import chain_graph as chain_graph
from oplet_testing.chains import elementwise as elementwise
from oplet_testing.contract import Contract as Contract
from oplet_testing.delegate_contract import DelegateContract as DelegateContract
from oplet_testing.graphs import Graph as Graph
from oplet_testing.graphs import Op as Op
from oplet_testing.graphs import graph_model as graph_model
from oplet_testing.litert import litert_interpreter as litert_interpreter
from oplet_testing.one_op import Spec as Spec
from oplet_testing.one_op import call_op as call_op
from oplet_testing.one_op import invoke as invoke
from oplet_testing.one_op import invoke_steps as invoke_steps
from oplet_testing.one_op import one_op_model as one_op_model
from oplet_testing.one_op import run_op as run_op
from oplet_testing.op_contract import OpContract as OpContract
from oplet_testing.op_contract import first_failure as first_failure
from oplet_testing.wrapping_delegate import WrappingDelegate as WrappingDelegate
