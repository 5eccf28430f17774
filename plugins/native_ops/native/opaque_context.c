/* The functions on TfLiteOpaqueContext, of c_api_opaque.h. */
#include "graph.h"

static Status give(const IntArray *indices, const int **values, int *count) {
  *values = indices ? indices->data : NULL;
  *count = indices ? indices->size : 0;
  return OK;
}

API Status TfLiteOpaqueContextGetExecutionPlan(Context *c, IntArray **plan) { return c->GetExecutionPlan(c, plan); }

API Status TfLiteOpaqueContextGetExternalContext(Context *c, void **value, int type) {
  *value = c->GetExternalContext(c, type);
  return OK;
}

API Status TfLiteOpaqueContextGetNodeAndRegistration(Context *c, int i, Node **node, Operator **op) {
  Registration *registration;
  const Status status = c->GetNodeAndRegistration(c, i, node, &registration);
  if (status != OK) return status;
  GraphNode *of = &graph_of(c)->nodes[i];
  if (registration->registration_external) return *op = registration->registration_external, OK;
  if (!of->op) of->op = TfLiteOperatorCreate(registration->builtin_code, registration->custom_name, registration->version, NULL);
  *op = of->op;
  return of->op ? OK : ERROR;
}

API Status TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels(Context *c, Operator *op, const IntArray *nodes, Delegate *d) {
  Registration registration = {0};
  registration.registration_external = op;
  return c->ReplaceNodeSubsetsWithDelegateKernels(c, registration, nodes, d);
}

API Tensor *TfLiteOpaqueContextGetOpaqueTensor(const Context *c, int i) { return context_tensor(c, i); }
API Status TfLiteOpaqueContextGetInputs(const Context *c, const int **v, int *n) { return give(graph_of(c)->inputs, v, n); }
API Status TfLiteOpaqueContextGetOutputs(const Context *c, const int **v, int *n) { return give(graph_of(c)->outputs, v, n); }
API Status TfLiteOpaqueContextGetVariables(const Context *c, const int **v, int *n) { return give(graph_of(c)->variables, v, n); }
API size_t TfLiteOpaqueContextGetNumNodes(const Context *c) { return graph_of(c)->node_count; }
API size_t TfLiteOpaqueContextGetNumTensors(const Context *c) { return c->tensors_size; }
API const char *TfLiteOpaqueContextGetName(const Context *c) { return graph_of(c)->name ? graph_of(c)->name : ""; }
API Status TfLiteOpaqueContextResizeTensor(Context *c, Tensor *t, IntArray *size) { return c->ResizeTensor(c, t, size); }
API Status TfLiteOpaqueContextAcquireSubgraphContext(Context *c, int i, Context **other) {
  return c->AcquireSubgraphContext(c, i, other);
}
API Status TfLiteOpaqueContextReleaseSubgraphContext(Context *c, int i) { return c->ReleaseSubgraphContext(c, i); }
API Status TfLiteOpaqueContextMarkSubgraphAsDelegationSkippable(Context *c, int i) {
  Graph *g = graph_of(c);
  return g->hooks.skip ? g->hooks.skip(g, i) : ERROR;
}
/* An error says, as in LiteRT, that options are not to be read from the file: the runtime has them in memory of its own. */
API Status TfLiteOpaqueContextGetNodeInitDataMmapInfo(const Context *c, const Node *n, int *file, int64_t *offset, int64_t *size) {
  (void)c, (void)n, (void)file, (void)offset, (void)size;
  return ERROR;
}
API Status TfLiteOpaqueContextGetSizeOfType(Context *c, int32_t type, size_t *bytes) {
  *bytes = type_bytes(type);
  if (*bytes) return OK;
  context_report(graph_of(c), "Type %s has no size; only types of whole bytes have one.", TfLiteTypeGetName(type));
  return ERROR;
}
API Status TfLiteOpaqueContextGetMetadata(Context *c, const char *name, const char **data, size_t *bytes) {
  return c->GetModelMetadata(c, name, data, bytes);
}
API void TfLiteOpaqueContextReportErrorVa(Context *c, const char *format, va_list arguments) {
  context_report_list(graph_of(c), format, arguments);
}
API __attribute__((format(printf, 2, 3))) void TfLiteOpaqueContextReportError(Context *c, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  context_report_list(graph_of(c), format, arguments);
  va_end(arguments);
}
