/* The layouts and numbers of LiteRT's C API for operators and delegates: what compiled libraries read and write.
 *
 * They are those of google-ai-edge/LiteRT, tflite/core/c/{c_api_types,common}.h, on 64-bit machines with little-endian numbers.
 * Tests compare every size and
 * offset with the headers of this package, and those with what the real ones say. */
#ifndef OPLET_NATIVE_ABI_H
#define OPLET_NATIVE_ABI_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int32_t Status; /* TfLiteStatus */
enum { OK = 0, ERROR = 1, UNRESOLVED_OPS = 7 };

enum { /* TfLiteType; not the numbers of the model file */
  TYPE_NONE = 0,
  TYPE_STRING = 5,
  TYPE_RESOURCE = 14,
  TYPE_VARIANT = 15,
  TYPE_COUNT = 24
};
enum { /* TfLiteAllocationType */
  MEMORY_NONE,
  MEMORY_MMAP_RO,
  MEMORY_ARENA_RW,
  MEMORY_ARENA_RW_PERSISTENT,
  MEMORY_DYNAMIC,
  MEMORY_PERSISTENT_RO,
  MEMORY_CUSTOM,
  MEMORY_VARIANT_OBJECT,
  MEMORY_NON_CPU,
  MEMORY_COUNT
};
enum { QUANTIZATION_NONE, QUANTIZATION_AFFINE, QUANTIZATION_BLOCKWISE, QUANTIZATION_MULTI_AXIS };
enum { BUILTIN_CUSTOM = 32, NO_BUFFER_HANDLE = -1 };
enum { EXTERNAL_CPU_BACKEND = 3, EXTERNAL_COUNT = 5 };

typedef struct { int size; int data[]; } IntArray;
typedef struct { int size; float data[]; } FloatArray;
typedef struct { float scale; int32_t zero_point; } QuantizationParams;
typedef struct { int32_t type; void *params; } Quantization;
typedef struct { FloatArray *scale; IntArray *zero_point; int32_t quantized_dimension; } AffineQuantization;
typedef struct { int32_t scale, zero_point, blocksize, quantized_dimension; } BlockwiseQuantization;
typedef struct { int32_t scales, zero_points, blocksize; IntArray *quantized_dimensions; } MultiAxisQuantization;
typedef struct { int32_t format; int dense_size; IntArray *array_segments, *array_indices; } DimensionMetadata;
typedef struct { IntArray *traversal_order, *block_map; DimensionMetadata *dim_metadata; int dim_metadata_size; } Sparsity;

typedef struct Context Context;
typedef struct Delegate Delegate;
typedef struct Operator Operator; /* TfLiteOperator, once TfLiteRegistrationExternal; libraries never look inside */

typedef struct { /* TfLiteAllocator */
  void *data;
  void *(*allocate)(void *, size_t bytes, size_t alignment);
  void *(*reallocate)(void *, void *, size_t old_bytes, size_t new_bytes, size_t alignment);
  void (*deallocate)(void *, void *, size_t bytes, size_t alignment);
} Allocator;

typedef struct { /* TfLiteTensor */
  int32_t type;
  void *data;
  IntArray *dims;
  QuantizationParams params;
  int32_t allocation_type;
  size_t bytes;
  const void *allocation;
  const char *name;
  Delegate *delegate;
  int buffer_handle;
  bool data_is_stale, is_variable;
  Quantization quantization;
  Sparsity *sparsity;
  const IntArray *dims_signature;
} Tensor;

typedef struct { /* TfLiteNode */
  IntArray *inputs, *outputs, *intermediates, *temporaries;
  void *user_data, *builtin_data;
  const void *custom_initial_data;
  int custom_initial_data_size;
  Delegate *delegate;
  bool might_have_side_effect;
} Node;

typedef struct { /* TfLiteRegistration. Older libraries' structs end at 64, 72 or 80 bytes, and nothing says which they are. */
  void *(*init)(Context *, const char *, size_t);
  void (*free)(Context *, void *);
  Status (*prepare)(Context *, Node *);
  Status (*invoke)(Context *, Node *);
  const char *(*profiling_string)(const Context *, const Node *);
  int32_t builtin_code;
  const char *custom_name;
  int version; /* what every generation has ends here */
  Operator *registration_external;
  void *(*async_kernel)(Context *, Node *);
  uint64_t inplace_operator;
} Registration;
enum { REGISTRATION_BYTES = 64 };

typedef struct { Delegate *delegate; IntArray *nodes_to_replace, *input_tensors, *output_tensors; } DelegateParams;
typedef struct {
  Delegate *delegate;
  void *delegate_data;
  IntArray *nodes_to_replace, *input_tensors, *output_tensors;
} OpaqueDelegateParams;

struct Context { /* TfLiteContext */
  size_t tensors_size;
  Status (*GetExecutionPlan)(Context *, IntArray **);
  Tensor *tensors;
  void *impl_;
  Status (*ResizeTensor)(Context *, Tensor *, IntArray *);
  void (*ReportError)(Context *, const char *, ...);
  Status (*AddTensors)(Context *, int, int *);
  Status (*GetNodeAndRegistration)(Context *, int, Node **, Registration **);
  Status (*ReplaceNodeSubsetsWithDelegateKernels)(Context *, Registration, const IntArray *, Delegate *);
  int recommended_num_threads;
  void *(*GetExternalContext)(Context *, int);
  void (*SetExternalContext)(Context *, int, void *);
  bool allow_fp32_relax_to_fp16;
  void *profiler;
  /* Null in LiteRT, and here: the next four are tflite-micro's. */
  void *(*AllocatePersistentBuffer)(Context *, size_t);
  Status (*AllocateBufferForEval)(Context *, size_t, void **);
  Status (*RequestScratchBufferInArena)(Context *, size_t, int *);
  void *(*GetScratchBuffer)(Context *, int);
  Status (*ResizeTensorExplicit)(Context *, Tensor *, int, const int *);
  Status (*PreviewDelegatePartitioning)(Context *, const IntArray *, DelegateParams **, int *);
  Tensor *(*GetTensor)(const Context *, int);
  void *(*GetEvalTensor)(const Context *, int);
  Status (*GetModelMetadata)(const Context *, const char *, const char **, size_t *);
  Status (*AcquireSubgraphContext)(Context *, int, Context **);
  Status (*ReleaseSubgraphContext)(Context *, int);
};

typedef struct { /* TfLiteOpaqueDelegateBuilder */
  void *data;
  Status (*Prepare)(Context *, Delegate *, void *);
  Status (*CopyFromBufferHandle)(Context *, Delegate *, void *, int, Tensor *);
  Status (*CopyToBufferHandle)(Context *, Delegate *, void *, int, Tensor *);
  void (*FreeBufferHandle)(Context *, Delegate *, void *, int *);
  int64_t flags;
} DelegateBuilder;

struct Delegate { /* TfLiteDelegate */
  void *data_;
  Status (*Prepare)(Context *, Delegate *);
  Status (*CopyFromBufferHandle)(Context *, Delegate *, int, Tensor *);
  Status (*CopyToBufferHandle)(Context *, Delegate *, int, Tensor *);
  void (*FreeBufferHandle)(Context *, Delegate *, int *);
  int64_t flags;
  DelegateBuilder *opaque_delegate_builder;
};

_Static_assert(sizeof(void *) == 8, "libraries of 64-bit machines only");
_Static_assert(sizeof(Tensor) == 112 && sizeof(Node) == 80 && sizeof(Registration) == 88, "layouts of the C API");
_Static_assert(sizeof(Context) == 200 && sizeof(Delegate) == 56 && sizeof(DelegateBuilder) == 48, "layouts of the C API");
_Static_assert(sizeof(DelegateParams) == 32 && sizeof(OpaqueDelegateParams) == 40, "layouts of the C API");
_Static_assert(offsetof(Registration, registration_external) == REGISTRATION_BYTES, "the oldest registration");
#endif
