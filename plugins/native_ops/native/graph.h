/* What stands behind a library's contexts, nodes and operators: the library's own functions see it, libraries do not. */
#ifndef OPLET_NATIVE_GRAPH_H
#define OPLET_NATIVE_GRAPH_H

#include "abi.h"

/* Everything else is hidden, so that two shims in one process, or a user's names, never meet. */
#define API __attribute__((visibility("default")))

/* As many tensors can be added in one init or prepare before pointers to those that are there go stale; LiteRT promises it. */
enum { TENSOR_HEADROOM = 16 };

typedef enum { PHASE_INIT, PHASE_PREPARE, PHASE_INVOKE, PHASE_DELEGATE } Phase;

/* A node of a graph as a delegate sees it. */
typedef struct {
  Node *node;
  Registration registration;
  Operator *op; /* the same as an operator, made when somebody asks for it */
  bool asked;   /* whether a delegate has looked at it */
  char *said;   /* what the delegate reported first after it had, null for nothing */
} GraphNode;

typedef struct Graph Graph;

/* What a graph cannot do by itself, for whoever runs the delegate; null where there is none. */
typedef struct {
  Status (*replace)(Graph *, const Registration *, const IntArray *, Delegate *);
  Status (*preview)(Graph *, const IntArray *, DelegateParams **, int *);
  Status (*metadata)(Graph *, const char *, const char **, size_t *);
  Status (*acquire)(Graph *, int, Context **);
  Status (*release)(Graph *, int);
  Status (*skip)(Graph *, int); /* MarkSubgraphAsDelegationSkippable */
} GraphHooks;

/* One node's world, or for a delegate one subgraph's. A Context * of ours is a Graph *. */
struct Graph {
  Context context; /* first */
  size_t tensor_capacity, base_count; /* base_count: those that no library added */
  GraphNode *nodes;
  size_t node_count, node_capacity;
  int last_asked; /* the node that a delegate asked for last, -1 before */
  IntArray *plan, *plan_given;
  IntArray *inputs, *outputs, *variables;
  char *name;
  char **names; /* of tensors that were described, and their indices */
  int *named;
  size_t name_count;
  void *external[EXTERNAL_COUNT];
  struct { int32_t type; void *refresh; void *internal; } cpu_backend; /* LiteRT's ExternalCpuBackendContext */
  GraphHooks hooks;
  Phase phase;
  size_t error_length;
  char error[2048];
};

struct Operator {
  Operator *next; /* all that are alive, see operator_is_ours */
  int32_t builtin_code;
  char *custom_name;
  int version;
  void *user_data;
  uint64_t inplace_operator;
  void *(*init)(Context *, const char *, size_t);
  void (*free)(Context *, void *);
  Status (*prepare)(Context *, Node *);
  Status (*invoke)(Context *, Node *);
  void *(*async_kernel)(Context *, Node *);
  void *(*init_with_data)(void *, Context *, const char *, size_t);
  void (*free_with_data)(void *, Context *, void *);
  Status (*prepare_with_data)(void *, Context *, Node *);
  Status (*invoke_with_data)(void *, Context *, Node *);
  void *(*async_kernel_with_data)(void *, Context *, Node *);
};

/* The opaque interface of a delegate, null where it has the other one; the rule is LiteRT's, as old structs end before the field. */
static inline const DelegateBuilder *builder_of(const Delegate *d) { return d->Prepare ? NULL : d->opaque_delegate_builder; }

static inline Graph *graph_of(const void *context) { return (Graph *)context; }

/* arrays.c */
size_t type_bytes(int32_t type); /* of one value; 0 where values are packed, of no fixed size, or the type is unknown */
API IntArray *TfLiteIntArrayCreate(int size);
API IntArray *TfLiteIntArrayCopy(const IntArray *);
API FloatArray *TfLiteFloatArrayCreate(int size);
API FloatArray *TfLiteFloatArrayCopy(const FloatArray *);
API const char *TfLiteTypeGetName(int32_t type);
IntArray *int_array(const int *values, int count);

/* tensor.c */
API void TfLiteTensorDataFree(Tensor *);
API void TfLiteTensorFree(Tensor *);
API Status TfLiteTensorResizeMaybeCopy(size_t bytes, Tensor *, bool preserve);
API const IntArray *TfLiteTensorGetDimsSignature(const Tensor *);
API void TfLiteTensorReset(int32_t type, const char *name, IntArray *dims, QuantizationParams, char *data, size_t bytes,
                           int32_t allocation_type, const void *allocation, bool is_variable, Tensor *);

/* context.c */
void context_fill(Graph *);
Tensor *context_tensor(const Context *, int index);
Status context_add_tensors(Context *, int count, int *first);
Status context_keep_headroom(Graph *);
Status context_reserve(Graph *, size_t tensors);
void context_release(Graph *);
void context_report(Graph *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void context_report_list(Graph *, const char *format, va_list);

/* operator.c */
API Operator *TfLiteOperatorCreate(int builtin_code, const char *name, int version, void *user_data);
API void TfLiteOperatorDelete(Operator *);
bool operator_is_ours(const void *);
#endif
