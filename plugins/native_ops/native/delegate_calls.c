/* What Python calls, through ctypes, for delegates: graphs of nodes, buffer handles, and the delegate's own functions. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

API void oplet_native_phase(Graph *, int phase);

/* ---- graphs of nodes --------------------------------------------------------------------------------------------------------------- */

/* Takes over the arrays. Nodes are given one by one; those that are not stay unknown. What libraries were given of nodes stays where it
 * is unless there are suddenly more than twice as many. */
API int oplet_native_graph_nodes(Graph *g, int count, IntArray *plan, IntArray *inputs, IntArray *outputs, IntArray *variables,
                                 const char *name) {
  free(g->plan), free(g->inputs), free(g->outputs), free(g->variables), free(g->name);
  g->plan = plan, g->inputs = inputs, g->outputs = outputs, g->variables = variables;
  g->name = strdup(name);
  if ((size_t)count > g->node_capacity) {
    const size_t capacity = 2 * (size_t)count;
    GraphNode *nodes = realloc(g->nodes, capacity * sizeof *nodes);
    if (!nodes) return 0;
    memset(nodes + g->node_capacity, 0, (capacity - g->node_capacity) * sizeof *nodes);
    g->nodes = nodes;
    g->node_capacity = capacity;
  }
  if ((size_t)count > g->node_count) g->node_count = (size_t)count;
  return g->name && g->plan && g->inputs && g->outputs && g->variables;
}

/* `name` must live as long as the graph. */
API void oplet_native_graph_node(Graph *g, int i, Node *node, int code, const char *name, int version) {
  GraphNode *of = &g->nodes[i];
  of->node = node;
  of->registration.builtin_code = code;
  of->registration.custom_name = name;
  of->registration.version = version;
}

/* Whether the delegate has asked for a node since it began, and what it said then. */
API int oplet_native_node_asked(const Graph *g, int i) { return g->nodes[i].asked; }
API const char *oplet_native_node_said(const Graph *g, int i) { return g->nodes[i].said ? g->nodes[i].said : ""; }

API GraphHooks *oplet_native_hooks(Graph *g) { return &g->hooks; }

/* ---- delegates ---------------------------------------------------------------------------------------------------------------------- */

API int oplet_native_delegate_is_opaque(const Delegate *d) { return builder_of(d) != NULL; }

API int64_t oplet_native_delegate_flags(const Delegate *d) {
  const DelegateBuilder *b = builder_of(d);
  return b ? b->flags : d->flags;
}

API int oplet_native_delegate_prepare(Delegate *d, Graph *g) {
  oplet_native_phase(g, PHASE_DELEGATE);
  g->last_asked = -1;
  for (size_t i = 0; i < g->node_count; i++) {
    g->nodes[i].asked = false;
    free(g->nodes[i].said);
    g->nodes[i].said = NULL;
  }
  if (context_keep_headroom(g) != OK) return ERROR;
  const DelegateBuilder *b = builder_of(d);
  if (b) return b->Prepare ? b->Prepare(&g->context, d, b->data) : ERROR;
  return d->Prepare ? d->Prepare(&g->context, d) : ERROR;
}

/* ---- buffer handles: where a delegate has no such function the answer is an error, as in LiteRT -------------------------------------- */

/* Whether any of these tensors has a buffer of a delegate's, or is out of date. */
API int oplet_native_handles(const Graph *g, int count, const int *tensors) {
  for (int i = 0; i < count; i++) {
    const Tensor *t = &g->context.tensors[tensors[i]];
    if (t->buffer_handle != NO_BUFFER_HANDLE || t->data_is_stale) return 1;
  }
  return 0;
}

API int oplet_native_delegate_copy_from(Delegate *d, Graph *g, int handle, int tensor) {
  const DelegateBuilder *b = builder_of(d);
  Tensor *t = context_tensor(&g->context, tensor);
  oplet_native_phase(g, PHASE_INVOKE);
  if (b) return b->CopyFromBufferHandle ? b->CopyFromBufferHandle(&g->context, d, b->data, handle, t) : ERROR;
  return d->CopyFromBufferHandle ? d->CopyFromBufferHandle(&g->context, d, handle, t) : ERROR;
}

API int oplet_native_delegate_copy_to(Delegate *d, Graph *g, int handle, int tensor) {
  const DelegateBuilder *b = builder_of(d);
  Tensor *t = context_tensor(&g->context, tensor);
  oplet_native_phase(g, PHASE_INVOKE);
  if (b) return b->CopyToBufferHandle ? b->CopyToBufferHandle(&g->context, d, b->data, handle, t) : ERROR;
  return d->CopyToBufferHandle ? d->CopyToBufferHandle(&g->context, d, handle, t) : ERROR;
}

API int oplet_native_delegate_free(Delegate *d, Graph *g, int handle) {
  const DelegateBuilder *b = builder_of(d);
  if (b) {
    if (!b->FreeBufferHandle) return ERROR;
    b->FreeBufferHandle(&g->context, d, b->data, &handle);
    return OK;
  }
  if (!d->FreeBufferHandle) return ERROR;
  d->FreeBufferHandle(&g->context, d, &handle);
  return OK;
}
