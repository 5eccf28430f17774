/* C++ names that libraries leave undefined which were compiled with LiteRT's own helpers and not linked with its runtime.
 *
 * tflite/delegates/utils.cc calls three methods of tflite::Subgraph on what `TfLiteContext::impl_` points to, which is our graph. */
#include "graph.h"

API Status _ZN6tflite8Subgraph22AcquireSubgraphContextEiPP13TfLiteContext(Graph *g, int i, Context **other) {
  return g->context.AcquireSubgraphContext(&g->context, i, other);
}
API Status _ZN6tflite8Subgraph22ReleaseSubgraphContextEi(Graph *g, int i) {
  return g->context.ReleaseSubgraphContext(&g->context, i);
}
API Status _ZN6tflite8Subgraph33MarkSubgraphAsDelegationSkippableEi(Graph *g, int i) {
  return g->hooks.skip ? g->hooks.skip(g, i) : ERROR;
}
