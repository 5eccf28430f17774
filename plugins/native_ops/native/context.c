/* What the function pointers of a TfLiteContext do. */
#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int TfLiteIntArrayEqualsArray(const IntArray *, int, const int *);

/* ---- errors --------------------------------------------------------------------------------------------------------------------- */

void context_report_list(Graph *g, const char *format, va_list arguments) {
  size_t room = sizeof g->error - g->error_length;
  if (room < 3) return;
  if (g->error_length) {
    g->error[g->error_length++] = ' ';
    room--;
  }
  char *text = g->error + g->error_length;
  const int written = vsnprintf(text, room, format, arguments);
  if (written > 0) g->error_length += (size_t)written < room ? (size_t)written : room - 1;
  if (written > 0 && g->phase == PHASE_DELEGATE && g->last_asked >= 0 && !g->nodes[g->last_asked].said)
    g->nodes[g->last_asked].said = strdup(text);
}

void context_report(Graph *g, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  context_report_list(g, format, arguments);
  va_end(arguments);
}

static void report_error(Context *c, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  context_report_list(graph_of(c), format, arguments);
  va_end(arguments);
}

/* ---- tensors -------------------------------------------------------------------------------------------------------------------- */

Tensor *context_tensor(const Context *c, int index) {
  return index >= 0 && (size_t)index < c->tensors_size ? &c->tensors[index] : NULL;
}

/* Pages, and not malloc's memory: a node knows few tensors of a large graph, and what is never touched takes no memory so. */
Status context_reserve(Graph *g, size_t wanted) {
  if (wanted <= g->tensor_capacity) return OK;
  const size_t had = g->tensor_capacity * sizeof(Tensor), bytes = wanted * sizeof(Tensor);
  void *grown = had ? mremap(g->context.tensors, had, bytes, MREMAP_MAYMOVE)
                    : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (grown == MAP_FAILED) return ERROR;
  g->context.tensors = grown;
  g->tensor_capacity = wanted;
  return OK;
}

void context_release(Graph *g) {
  if (g->tensor_capacity) munmap(g->context.tensors, g->tensor_capacity * sizeof(Tensor));
  g->context.tensors = NULL;
  g->tensor_capacity = 0;
}

Status context_keep_headroom(Graph *g) { return context_reserve(g, g->context.tensors_size + TENSOR_HEADROOM); }

Status context_add_tensors(Context *c, int count, int *first) {
  Graph *g = graph_of(c);
  if (count < 0) return ERROR;
  const size_t need = c->tensors_size + (size_t)count;
  if (need > g->tensor_capacity && context_reserve(g, need + TENSOR_HEADROOM) != OK) return ERROR;
  for (size_t i = c->tensors_size; i < need; i++) c->tensors[i].buffer_handle = NO_BUFFER_HANDLE;
  if (first) *first = (int)c->tensors_size;
  c->tensors_size = need;
  return OK;
}

static bool bytes_of(const Tensor *t, int count, const int *shape, size_t *bytes) {
  size_t total = type_bytes(t->type);
  for (int i = 0; i < count; i++) {
    if (shape[i] < 0) return false;
    if (__builtin_mul_overflow(total, (size_t)shape[i], &total)) return false;
  }
  *bytes = total;
  return true;
}

/* `size` stays the caller's. */
static Status resize_to(Context *c, Tensor *t, int count, const int *shape) {
  Graph *g = graph_of(c);
  const int32_t memory = t->allocation_type;
  if (memory == MEMORY_NONE || memory == MEMORY_MMAP_RO || memory == MEMORY_VARIANT_OBJECT ||
      (g->phase == PHASE_INVOKE && memory != MEMORY_DYNAMIC && !TfLiteIntArrayEqualsArray(t->dims, count, shape))) {
    context_report(g, "Attempting to resize a fixed-size tensor.");
    return ERROR;
  }
  const bool has_bytes = t->type != TYPE_STRING && t->type != TYPE_RESOURCE && t->type != TYPE_VARIANT;
  size_t bytes = 0;
  if (has_bytes && !bytes_of(t, count, shape, &bytes)) {
    context_report(g, "A tensor cannot have a negative dimension, nor more bytes than can be addressed.");
    return ERROR;
  }
  if (!TfLiteIntArrayEqualsArray(t->dims, count, shape)) {
    IntArray *dims = int_array(shape, count);
    if (!dims) return ERROR;
    free(t->dims);
    t->dims = dims;
  }
  if (!has_bytes) return OK;
  if (memory == MEMORY_DYNAMIC || memory == MEMORY_PERSISTENT_RO) return TfLiteTensorResizeMaybeCopy(bytes, t, false);
  t->bytes = bytes;
  if (g->phase != PHASE_INVOKE && memory != MEMORY_CUSTOM && memory != MEMORY_NON_CPU) t->data = NULL; /* it gets its memory later */
  return OK;
}

static Status resize_tensor(Context *c, Tensor *t, IntArray *size) { /* takes `size` over */
  if (!size) return ERROR;
  if (!t) return free(size), ERROR;
  const Status status = resize_to(c, t, size->size, size->data);
  if (size != t->dims) free(size);
  return status;
}

static Status resize_tensor_explicit(Context *c, Tensor *t, int count, const int *shape) {
  return t && count >= 0 ? resize_to(c, t, count, shape) : ERROR;
}

/* ---- the graph: for delegates, while they claim nodes and while their kernels are initialized ------------------------------------ */

static Status forbidden(Context *c, const char *function) {
  context_report(graph_of(c), "%s is forbidden outside of a delegate.", function);
  return ERROR;
}

static Status get_execution_plan(Context *c, IntArray **plan) {
  Graph *g = graph_of(c);
  if (!g->plan) return forbidden(c, "GetExecutionPlan");
  free(g->plan_given); /* LiteRT's answer, too, is good until the next question */
  *plan = g->plan_given = TfLiteIntArrayCopy(g->plan);
  return *plan ? OK : ERROR;
}

static Status get_node_and_registration(Context *c, int i, Node **node, Registration **registration) {
  Graph *g = graph_of(c);
  if (!g->nodes || g->phase == PHASE_INVOKE) return forbidden(c, "GetNodeAndRegistration");
  if (i < 0 || (size_t)i >= g->node_count || !g->nodes[i].node) return ERROR;
  g->nodes[i].asked = true;
  g->last_asked = i;
  *node = g->nodes[i].node;
  *registration = &g->nodes[i].registration;
  return OK;
}

static Status replace_node_subsets(Context *c, Registration registration, const IntArray *nodes, Delegate *delegate) {
  Graph *g = graph_of(c);
  if (!g->hooks.replace || g->phase != PHASE_DELEGATE) return forbidden(c, "ReplaceNodeSubsetsWithDelegateKernels");
  return g->hooks.replace(g, &registration, nodes, delegate);
}

static Status preview_partitioning(Context *c, const IntArray *nodes, DelegateParams **params, int *count) {
  Graph *g = graph_of(c);
  if (!g->hooks.preview || g->phase != PHASE_DELEGATE) return forbidden(c, "PreviewDelegatePartitioning");
  return g->hooks.preview(g, nodes, params, count);
}

static Status acquire_subgraph(Context *c, int i, Context **other) {
  Graph *g = graph_of(c);
  return g->hooks.acquire ? g->hooks.acquire(g, i, other) : forbidden(c, "AcquireSubgraphContext");
}

static Status release_subgraph(Context *c, int i) {
  Graph *g = graph_of(c);
  return g->hooks.release ? g->hooks.release(g, i) : forbidden(c, "ReleaseSubgraphContext");
}

static Status get_model_metadata(const Context *c, const char *name, const char **data, size_t *bytes) {
  Graph *g = graph_of(c);
  *data = NULL;
  *bytes = 0;
  return g->hooks.metadata ? g->hooks.metadata(g, name, data, bytes) : ERROR;
}

/* ---- external contexts ------------------------------------------------------------------------------------------------------------ */

static void *get_external(Context *c, int type) { return type >= 0 && type < EXTERNAL_COUNT ? graph_of(c)->external[type] : NULL; }

static void set_external(Context *c, int type, void *value) {
  if (type >= 0 && type < EXTERNAL_COUNT) graph_of(c)->external[type] = value;
}

void context_fill(Graph *g) {
  Context *c = &g->context;
  g->last_asked = -1;
  c->impl_ = g; /* C++ helpers of LiteRT's call three methods of what stands here: see cxx_names.c */
  c->GetExecutionPlan = get_execution_plan;
  c->ResizeTensor = resize_tensor;
  c->ResizeTensorExplicit = resize_tensor_explicit;
  c->ReportError = report_error;
  c->AddTensors = context_add_tensors;
  c->GetNodeAndRegistration = get_node_and_registration;
  c->ReplaceNodeSubsetsWithDelegateKernels = replace_node_subsets;
  c->PreviewDelegatePartitioning = preview_partitioning;
  c->GetExternalContext = get_external;
  c->SetExternalContext = set_external;
  c->GetTensor = context_tensor;
  c->GetModelMetadata = get_model_metadata;
  c->AcquireSubgraphContext = acquire_subgraph;
  c->ReleaseSubgraphContext = release_subgraph;
  /* LiteRT's kernels end the process where there is no such context; they fill it in themselves. */
  g->cpu_backend.type = EXTERNAL_CPU_BACKEND;
  g->external[EXTERNAL_CPU_BACKEND] = &g->cpu_backend;
}
