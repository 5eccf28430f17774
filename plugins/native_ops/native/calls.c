/* What Python calls, through ctypes: graphs, nodes and kernels. No function here needs Python's headers. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

/* Raised whenever a signature or a struct here changes: the Python side refuses a library of another number. */
enum { INTERFACE = 3 };

API int oplet_native_interface(void) { return INTERFACE; }

/* ---- graphs ----------------------------------------------------------------------------------------------------------------------- */

API void oplet_native_graph_free(Graph *g);

/* A graph of so many tensors, of which nothing is known yet. */
API Graph *oplet_native_graph(int tensors, int threads) {
  Graph *g = calloc(1, sizeof *g);
  if (!g) return NULL;
  context_fill(g);
  g->context.recommended_num_threads = threads;
  if (context_reserve(g, (size_t)tensors + TENSOR_HEADROOM) != OK) return free(g), NULL;
  g->context.tensors_size = g->base_count = (size_t)tensors;
  return g;
}

API void oplet_native_graph_free(Graph *g) {
  if (!g) return;
  if (g->cpu_backend.internal) {
    /* A C++ object with a virtual destructor, made by a kernel; the second entry of its table destroys and frees it. */
    void (**table)(void *) = *(void (***)(void *))g->cpu_backend.internal;
    table[1](g->cpu_backend.internal);
  }
  for (size_t i = 0; i < g->name_count; i++) TfLiteTensorFree(&g->context.tensors[g->named[i]]);
  for (size_t i = g->base_count; i < g->context.tensors_size; i++) TfLiteTensorFree(&g->context.tensors[i]);
  for (size_t i = 0; i < g->node_count; i++) {
    TfLiteOperatorDelete(g->nodes[i].op);
    free(g->nodes[i].said);
  }
  for (size_t i = 0; i < g->name_count; i++) free(g->names[i]);
  free(g->names);
  free(g->named);
  context_release(g);
  free(g->nodes);
  free(g->plan);
  free(g->plan_given);
  free(g->inputs);
  free(g->outputs);
  free(g->variables);
  free(g->name);
  free(g);
}

API void oplet_native_phase(Graph *g, int phase) {
  g->phase = (Phase)phase;
  g->error_length = 0;
  g->error[0] = 0;
}

API const char *oplet_native_error(Graph *g) { return g->error_length ? g->error : ""; }

API int oplet_native_tensor_count(const Graph *g) { return (int)g->context.tensors_size; }

API Tensor *oplet_native_tensor(Graph *g, int i) { return context_tensor(&g->context, i); }

/* What stays: type, name and signature. Returns whether there was memory for it. */
API int oplet_native_describe(Graph *g, int i, int type, const char *name, int is_variable, int rank, const int *signature) {
  Tensor *t = context_tensor(&g->context, i);
  char **names = realloc(g->names, (g->name_count + 1) * sizeof *names);
  if (names) g->names = names;
  int *named = realloc(g->named, (g->name_count + 1) * sizeof *named);
  if (named) g->named = named;
  char *copy = strdup(name);
  if (!t || !names || !named || !copy) return free(copy), 0;
  names[g->name_count] = copy;
  named[g->name_count++] = i;
  free((void *)t->dims_signature);
  t->dims_signature = int_array(signature, rank);
  t->type = type;
  t->name = copy;
  t->is_variable = is_variable != 0;
  t->buffer_handle = NO_BUFFER_HANDLE;
  return t->dims_signature != NULL;
}

/* The shape of now; memory of C's that an earlier one had is freed. */
API int oplet_native_shape(Graph *g, int i, int memory, int rank, const int *shape, size_t bytes) {
  Tensor *t = context_tensor(&g->context, i);
  IntArray *dims = t ? int_array(shape, rank) : NULL;
  if (!dims) return 0;
  TfLiteTensorDataFree(t);
  free(t->dims);
  t->dims = dims;
  t->bytes = bytes;
  t->allocation_type = memory;
  return 1;
}

API int oplet_native_quantize(Graph *g, int i, int scales, const float *scale, int zeros, const int *zero_point, int dimension) {
  Tensor *t = context_tensor(&g->context, i);
  AffineQuantization *affine = t ? calloc(1, sizeof *affine) : NULL;
  if (!affine) return 0;
  affine->scale = TfLiteFloatArrayCreate(scales);
  affine->zero_point = int_array(zero_point, zeros);
  affine->quantized_dimension = dimension;
  t->quantization = (Quantization){QUANTIZATION_AFFINE, affine};
  if (!affine->scale || !affine->zero_point) return 0;
  memcpy(affine->scale->data, scale, sizeof(float) * (size_t)scales);
  if (scales == 1 && zeros == 1) t->params = (QuantizationParams){scale[0], zero_point[0]};
  return 1;
}

API void oplet_native_data(Graph *g, int i, void *data, size_t bytes) {
  Tensor *t = context_tensor(&g->context, i);
  t->data = data;
  t->bytes = bytes;
}

/* ---- nodes -------------------------------------------------------------------------------------------------------------------------- */

API void oplet_native_node_free(Node *n) {
  if (!n) return;
  free(n->inputs), free(n->outputs), free(n->intermediates), free(n->temporaries);
  free(n);
}

API Node *oplet_native_node(const int *inputs, int input_count, const int *outputs, int output_count, const int *intermediates,
                            int intermediate_count) {
  Node *n = calloc(1, sizeof *n);
  if (!n) return NULL;
  n->inputs = int_array(inputs, input_count);
  n->outputs = int_array(outputs, output_count);
  n->intermediates = int_array(intermediates, intermediate_count);
  n->temporaries = TfLiteIntArrayCreate(0);
  if (n->inputs && n->outputs && n->intermediates && n->temporaries) return n;
  oplet_native_node_free(n);
  return NULL;
}

/* ---- kernels ------------------------------------------------------------------------------------------------------------------------ */

/* How an operator is called: by an operator of ours, or by the part of a registration that every generation has. */
typedef struct {
  Registration registration;
  Operator *op;
} Kernel;

/* One node, ready to run, and the tensors whose memory is not the library's to replace. */
typedef struct {
  Kernel *kernel;
  Graph *graph;
  Node *node;
  int fixed_count;
  const int *fixed;
  void *const *addresses;
} Call;

API int oplet_native_is_operator(const void *p) { return operator_is_ours(p); }

API Kernel *oplet_native_kernel(const void *p, int is_operator) {
  Kernel *k = calloc(1, sizeof *k);
  if (k && is_operator) k->op = (Operator *)p;
  if (k && !is_operator) memcpy(&k->registration, p, REGISTRATION_BYTES);
  return k;
}

API void oplet_native_kernel_free(Kernel *k) { free(k); }

enum { HAS_INIT = 1, HAS_FREE = 2, HAS_PREPARE = 4, HAS_INVOKE = 8 };

/* Which methods it has, as a sum of the numbers above. */
API int oplet_native_methods(const Kernel *k) {
  const Operator *o = k->op;
  const Registration *r = &k->registration;
  return (o ? o->init || o->init_with_data : r->init != NULL) * HAS_INIT +
         (o ? o->free || o->free_with_data : r->free != NULL) * HAS_FREE +
         (o ? o->prepare || o->prepare_with_data : r->prepare != NULL) * HAS_PREPARE +
         (o ? o->invoke || o->invoke_with_data : r->invoke != NULL) * HAS_INVOKE;
}

API void *oplet_native_init(Kernel *k, Graph *g, const char *buffer, size_t length) {
  const Operator *o = k->op;
  oplet_native_phase(g, PHASE_INIT);
  if (context_keep_headroom(g) != OK) return NULL;
  if (o && o->init_with_data) return o->init_with_data(o->user_data, &g->context, buffer, length);
  void *(*init)(Context *, const char *, size_t) = o ? o->init : k->registration.init;
  return init ? init(&g->context, buffer, length) : NULL;
}

/* Not called where init failed or gave nothing, as in LiteRT. */
API void oplet_native_free(Kernel *k, Graph *g, void *user_data) {
  const Operator *o = k->op;
  if (!user_data || user_data == (void *)(intptr_t)-1) return;
  oplet_native_phase(g, PHASE_INIT);
  if (o && o->free_with_data) {
    o->free_with_data(o->user_data, &g->context, user_data);
    return;
  }
  void (*release)(Context *, void *) = o ? o->free : k->registration.free;
  if (release) release(&g->context, user_data);
}

API int oplet_native_prepare(Kernel *k, Graph *g, Node *n) {
  const Operator *o = k->op;
  oplet_native_phase(g, PHASE_PREPARE);
  if (context_keep_headroom(g) != OK) return ERROR;
  if (o && o->prepare_with_data) return o->prepare_with_data(o->user_data, &g->context, n);
  Status (*prepare)(Context *, Node *) = o ? o->prepare : k->registration.prepare;
  return prepare ? prepare(&g->context, n) : OK;
}

/* The status; or, where the library put memory of its own in a fixed tensor's place, -1 minus its position among them. */
API int oplet_native_invoke(const Call *call) {
  const Operator *o = call->kernel->op;
  Graph *g = call->graph;
  g->phase = PHASE_INVOKE;
  g->error_length = 0;
  Status status = UNRESOLVED_OPS;
  if (o && o->invoke_with_data) {
    status = o->invoke_with_data(o->user_data, &g->context, call->node);
  } else {
    Status (*invoke)(Context *, Node *) = o ? o->invoke : call->kernel->registration.invoke;
    if (invoke) status = invoke(&g->context, call->node);
  }
  for (int i = 0; i < call->fixed_count; i++)
    if (g->context.tensors[call->fixed[i]].data != call->addresses[i]) return status ? status : -1 - i;
  return status;
}
