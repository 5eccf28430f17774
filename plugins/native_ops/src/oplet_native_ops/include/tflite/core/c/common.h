/* The structs of LiteRT's C API, and the functions on them. */
#ifndef OPLET_TFLITE_CORE_C_COMMON_H_
#define OPLET_TFLITE_CORE_C_COMMON_H_

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tflite/core/c/c_api_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum TfLiteExternalContextType {
  kTfLiteEigenContext = 0,
  kTfLiteGemmLowpContext = 1,
  kTfLiteEdgeTpuContext = 2,
  kTfLiteCpuBackendContext = 3,
  kTfLiteLiteRtBufferContext = 4,
  kTfLiteMaxExternalContexts = 5
} TfLiteExternalContextType;

struct TfLiteContext;
struct TfLiteRegistration;
struct TfLiteOpaqueDelegateBuilder;
struct TfLiteAsyncKernel;

typedef struct TfLiteExternalContext {
  TfLiteExternalContextType type;
  TfLiteStatus (*Refresh)(struct TfLiteContext* context);
} TfLiteExternalContext;

#define kTfLiteOptionalTensor (-1)

/* ---- arrays: `size` values follow it ---- */

typedef struct TfLiteIntArray {
  int size;
  int data[];
} TfLiteIntArray;

typedef struct TfLiteFloatArray {
  int size;
  float data[];
} TfLiteFloatArray;

size_t TfLiteIntArrayGetSizeInBytes(int size);
TfLiteIntArray* TfLiteIntArrayCreate(int size);
int TfLiteIntArrayEqual(const TfLiteIntArray* a, const TfLiteIntArray* b);
int TfLiteIntArrayEqualsArray(const TfLiteIntArray* a, int b_size, const int b_data[]);
TfLiteIntArray* TfLiteIntArrayCopy(const TfLiteIntArray* src);
void TfLiteIntArrayFree(TfLiteIntArray* a);
int TfLiteFloatArrayGetSizeInBytes(int size);
TfLiteFloatArray* TfLiteFloatArrayCreate(int size);
TfLiteFloatArray* TfLiteFloatArrayCopy(const TfLiteFloatArray* src);
void TfLiteFloatArrayFree(TfLiteFloatArray* a);

/* ---- tensors ---- */

typedef struct TfLiteComplex64 { float re, im; } TfLiteComplex64;
typedef struct TfLiteComplex128 { double re, im; } TfLiteComplex128;
typedef struct TfLiteFloat16 { uint16_t data; } TfLiteFloat16;
typedef struct TfLiteBFloat16 { uint16_t data; } TfLiteBFloat16;

const char* TfLiteTypeGetName(TfLiteType type);

#ifdef __cplusplus
typedef enum TfLiteQuantizationType : int {
#else
typedef enum TfLiteQuantizationType {
#endif
  kTfLiteNoQuantization = 0,
  kTfLiteAffineQuantization = 1,
  kTfLiteBlockwiseQuantization = 2,
  kTfLiteMultiAxisQuantization = 3
} TfLiteQuantizationType;

typedef struct TfLiteQuantization {
  TfLiteQuantizationType type;
  void* params;
} TfLiteQuantization;

typedef struct TfLiteAffineQuantization {
  TfLiteFloatArray* scale;
  TfLiteIntArray* zero_point;
  int32_t quantized_dimension;
} TfLiteAffineQuantization;

typedef struct TfLiteBlockwiseQuantization {
  int32_t scale;
  int32_t zero_point;
  int32_t blocksize;
  int32_t quantized_dimension;
} TfLiteBlockwiseQuantization;

typedef struct TfLiteMultiAxisQuantization {
  int32_t scales;
  int32_t zero_points;
  int32_t blocksize;
  TfLiteIntArray* quantized_dimensions;
} TfLiteMultiAxisQuantization;

typedef union TfLitePtrUnion {
  int32_t* i32;
  uint32_t* u32;
  int64_t* i64;
  uint64_t* u64;
  float* f;
  TfLiteFloat16* f16;
  TfLiteBFloat16* bf16;
  double* f64;
  char* raw;
  const char* raw_const;
  uint8_t* uint8;
  bool* b;
  int16_t* i16;
  uint16_t* ui16;
  TfLiteComplex64* c64;
  TfLiteComplex128* c128;
  int8_t* int8;
  void* data;
} TfLitePtrUnion;

typedef enum TfLiteAllocationType {
  kTfLiteMemNone = 0,
  kTfLiteMmapRo,
  kTfLiteArenaRw,
  kTfLiteArenaRwPersistent,
  kTfLiteDynamic,
  kTfLitePersistentRo,
  kTfLiteCustom,
  kTfLiteVariantObject,
  kTfLiteNonCpu
} TfLiteAllocationType;

typedef enum TfLiteAllocationStrategy {
  kTfLiteAllocationStrategyUnknown,
  kTfLiteAllocationStrategyNone,
  kTfLiteAllocationStrategyMMap,
  kTfLiteAllocationStrategyArena,
  kTfLiteAllocationStrategyMalloc,
  kTfLiteAllocationStrategyNew
} TfLiteAllocationStrategy;

typedef enum TfLiteRunStability {
  kTfLiteRunStabilityUnknown,
  kTfLiteRunStabilityUnstable,
  kTfLiteRunStabilitySingleRun,
  kTfLiteRunStabilityAcrossRuns
} TfLiteRunStability;

typedef enum TfLiteRunStep {
  kTfLiteRunStepUnknown,
  kTfLiteRunStepInit,
  kTfLiteRunStepPrepare,
  kTfLiteRunStepEval
} TfLiteRunStep;

typedef int TfLiteBufferHandle;
enum { kTfLiteNullBufferHandle = -1 };

typedef struct TfLiteDimensionMetadata {
  TfLiteDimensionType format;
  int dense_size;
  TfLiteIntArray* array_segments;
  TfLiteIntArray* array_indices;
} TfLiteDimensionMetadata;

typedef struct TfLiteSparsity {
  TfLiteIntArray* traversal_order;
  TfLiteIntArray* block_map;
  TfLiteDimensionMetadata* dim_metadata;
  int dim_metadata_size;
} TfLiteSparsity;

typedef struct TfLiteCustomAllocation {
  void* data;
  size_t bytes;
} TfLiteCustomAllocation;

typedef struct TfLiteAllocator {
  void* data;
  void* (*allocate)(void* data, size_t bytes, size_t alignment);
  void* (*reallocate)(void* data, void* ptr, size_t old_bytes, size_t new_bytes, size_t alignment);
  void (*deallocate)(void* data, void* ptr, size_t bytes, size_t alignment);
} TfLiteAllocator;

typedef struct TfLiteTensor {
  TfLiteType type;
  TfLitePtrUnion data;
  TfLiteIntArray* dims;
  TfLiteQuantizationParams params;
  TfLiteAllocationType allocation_type;
  size_t bytes;
  const void* allocation;
  const char* name;
  struct TfLiteDelegate* delegate;
  TfLiteBufferHandle buffer_handle;
  bool data_is_stale;
  bool is_variable;
  TfLiteQuantization quantization;
  TfLiteSparsity* sparsity;
  const TfLiteIntArray* dims_signature;
} TfLiteTensor;

typedef struct TfLiteEvalTensor {
  TfLitePtrUnion data;
  TfLiteIntArray* dims;
  TfLiteType type;
} TfLiteEvalTensor;

void TfLiteTensorDataFree(TfLiteTensor* t);
void TfLiteTensorDataFreeWithAllocator(TfLiteTensor* t, TfLiteAllocator* allocator);
void TfLiteQuantizationFree(TfLiteQuantization* quantization);
void TfLiteSparsityFree(TfLiteSparsity* sparsity);
void TfLiteTensorFree(TfLiteTensor* t);
void TfLiteTensorReset(TfLiteType type, const char* name, TfLiteIntArray* dims, TfLiteQuantizationParams quantization, char* buffer,
                       size_t size, TfLiteAllocationType allocation_type, const void* allocation, bool is_variable,
                       TfLiteTensor* tensor);
TfLiteStatus TfLiteTensorCopy(const TfLiteTensor* src, TfLiteTensor* dst);
TfLiteTensor TfLiteTensorClone(TfLiteTensor src);
TfLiteStatus TfLiteTensorResizeMaybeCopy(size_t num_bytes, TfLiteTensor* tensor, bool preserve_data);
TfLiteStatus TfLiteTensorResizeMaybeCopyWithAllocator(size_t num_bytes, TfLiteTensor* tensor, bool preserve_data,
                                                      TfLiteAllocator* allocator);
TfLiteStatus TfLiteTensorRealloc(size_t num_bytes, TfLiteTensor* tensor);
TfLiteStatus TfLiteTensorReallocWithAllocator(size_t num_bytes, TfLiteTensor* tensor, TfLiteAllocator* allocator);
const TfLiteIntArray* TfLiteTensorGetDimsSignature(const TfLiteTensor* t);
TfLiteAllocationStrategy TfLiteTensorGetAllocationStrategy(const TfLiteTensor* t);
TfLiteRunStability TfLiteTensorGetBufferAddressStability(const TfLiteTensor* t);
TfLiteRunStability TfLiteTensorGetDataStability(const TfLiteTensor* t);
TfLiteRunStep TfLiteTensorGetDataKnownStep(const TfLiteTensor* t);
TfLiteRunStep TfLiteTensorGetShapeKnownStep(const TfLiteTensor* t);

/* ---- nodes, contexts and operators ---- */

typedef struct TfLiteNode {
  TfLiteIntArray* inputs;
  TfLiteIntArray* outputs;
  TfLiteIntArray* intermediates;
  TfLiteIntArray* temporaries;
  void* user_data;
  void* builtin_data;
  const void* custom_initial_data;
  int custom_initial_data_size;
  struct TfLiteDelegate* delegate;
  bool might_have_side_effect;
} TfLiteNode;

typedef struct TfLiteDelegateParams {
  struct TfLiteDelegate* delegate;
  TfLiteIntArray* nodes_to_replace;
  TfLiteIntArray* input_tensors;
  TfLiteIntArray* output_tensors;
} TfLiteDelegateParams;

typedef struct TfLiteOpaqueDelegateParams {
  TfLiteOpaqueDelegate* delegate;
  void* delegate_data;
  TfLiteIntArray* nodes_to_replace;
  TfLiteIntArray* input_tensors;
  TfLiteIntArray* output_tensors;
} TfLiteOpaqueDelegateParams;

typedef struct TfLiteOperator TfLiteOperator;
typedef TfLiteOperator TfLiteRegistrationExternal;

typedef enum {
  kTfLiteInplaceOpNone = 0,
  kTfLiteInplaceOpDataUnmodified = 1,
  kTfLiteInplaceInputCanBeSharedWithCorrespondingOutput = 2,
  kTfLiteInplaceOpInput0Shared = 4,
  kTfLiteInplaceOpInput1Shared = 8,
  kTfLiteInplaceOpInput2Shared = 16
} TfLiteInPlaceOp;
static const int kTfLiteMaxSharableOpInputs = 3;

typedef struct TfLiteRegistration {
  void* (*init)(struct TfLiteContext* context, const char* buffer, size_t length);
  void (*free)(struct TfLiteContext* context, void* buffer);
  TfLiteStatus (*prepare)(struct TfLiteContext* context, TfLiteNode* node);
  TfLiteStatus (*invoke)(struct TfLiteContext* context, TfLiteNode* node);
  const char* (*profiling_string)(const struct TfLiteContext* context, const TfLiteNode* node);
  int32_t builtin_code;
  const char* custom_name;
  int version;
  TfLiteOperator* registration_external;
  struct TfLiteAsyncKernel* (*async_kernel)(struct TfLiteContext* context, TfLiteNode* node);
  uint64_t inplace_operator;
} TfLiteRegistration;

typedef struct TfLiteContext {
  size_t tensors_size;
  TfLiteStatus (*GetExecutionPlan)(struct TfLiteContext* context, TfLiteIntArray** execution_plan);
  TfLiteTensor* tensors;
  void* impl_;
  TfLiteStatus (*ResizeTensor)(struct TfLiteContext* context, TfLiteTensor* tensor, TfLiteIntArray* new_size);
  void (*ReportError)(struct TfLiteContext* context, const char* msg, ...);
  TfLiteStatus (*AddTensors)(struct TfLiteContext* context, int tensors_to_add, int* first_new_tensor_index);
  TfLiteStatus (*GetNodeAndRegistration)(struct TfLiteContext* context, int node_index, TfLiteNode** node,
                                         TfLiteRegistration** registration);
  TfLiteStatus (*ReplaceNodeSubsetsWithDelegateKernels)(struct TfLiteContext* context, TfLiteRegistration registration,
                                                        const TfLiteIntArray* nodes_to_replace, struct TfLiteDelegate* delegate);
  int recommended_num_threads;
  TfLiteExternalContext* (*GetExternalContext)(struct TfLiteContext* context, TfLiteExternalContextType type);
  void (*SetExternalContext)(struct TfLiteContext* context, TfLiteExternalContextType type, TfLiteExternalContext* external);
  bool allow_fp32_relax_to_fp16;
  void* profiler;
  void* (*AllocatePersistentBuffer)(struct TfLiteContext* context, size_t bytes);
  TfLiteStatus (*AllocateBufferForEval)(struct TfLiteContext* context, size_t bytes, void** ptr);
  TfLiteStatus (*RequestScratchBufferInArena)(struct TfLiteContext* context, size_t bytes, int* buffer_idx);
  void* (*GetScratchBuffer)(struct TfLiteContext* context, int buffer_idx);
  TfLiteStatus (*ResizeTensorExplicit)(struct TfLiteContext* context, TfLiteTensor* tensor, int dims, const int* shape);
  TfLiteStatus (*PreviewDelegatePartitioning)(struct TfLiteContext* context, const TfLiteIntArray* nodes_to_replace,
                                              TfLiteDelegateParams** partition_params_array, int* num_partitions);
  TfLiteTensor* (*GetTensor)(const struct TfLiteContext* context, int tensor_idx);
  TfLiteEvalTensor* (*GetEvalTensor)(const struct TfLiteContext* context, int tensor_idx);
  TfLiteStatus (*GetModelMetadata)(const struct TfLiteContext* context, const char* name, const char** ptr, size_t* bytes);
  TfLiteStatus (*AcquireSubgraphContext)(struct TfLiteContext* context, int subgraph_index, struct TfLiteContext** acquired_context);
  TfLiteStatus (*ReleaseSubgraphContext)(struct TfLiteContext* context, int subgraph_index);
} TfLiteContext;

void* TfLiteKernelInitFailed(void);

/* ---- delegates ---- */

typedef enum TfLiteDelegateFlags {
  kTfLiteDelegateFlagsNone = 0,
  kTfLiteDelegateFlagsAllowDynamicTensors = 1,
  kTfLiteDelegateFlagsRequirePropagatedShapes = 2,
  kTfLiteDelegateFlagsPerOperatorProfiling = 4,
  kTfLiteDelegateFlagsHintFullyDelegatedToSingleDelegate = 8
} TfLiteDelegateFlags;

struct TfLiteDelegate {
  void* data_;
  TfLiteStatus (*Prepare)(TfLiteContext* context, struct TfLiteDelegate* delegate);
  TfLiteStatus (*CopyFromBufferHandle)(TfLiteContext* context, struct TfLiteDelegate* delegate, TfLiteBufferHandle buffer_handle,
                                       TfLiteTensor* tensor);
  TfLiteStatus (*CopyToBufferHandle)(TfLiteContext* context, struct TfLiteDelegate* delegate, TfLiteBufferHandle buffer_handle,
                                     TfLiteTensor* tensor);
  void (*FreeBufferHandle)(TfLiteContext* context, struct TfLiteDelegate* delegate, TfLiteBufferHandle* handle);
  int64_t flags;
  struct TfLiteOpaqueDelegateBuilder* opaque_delegate_builder;
};

typedef struct TfLiteOpaqueDelegateBuilder {
  void* data;
  TfLiteStatus (*Prepare)(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate, void* data);
  TfLiteStatus (*CopyFromBufferHandle)(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate, void* data,
                                       TfLiteBufferHandle buffer_handle, TfLiteOpaqueTensor* tensor);
  TfLiteStatus (*CopyToBufferHandle)(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate, void* data,
                                     TfLiteBufferHandle buffer_handle, TfLiteOpaqueTensor* tensor);
  void (*FreeBufferHandle)(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate, void* data, TfLiteBufferHandle* handle);
  int64_t flags;
} TfLiteOpaqueDelegateBuilder;

TfLiteDelegate TfLiteDelegateCreate(void);
TfLiteOpaqueDelegate* TfLiteOpaqueDelegateCreate(const TfLiteOpaqueDelegateBuilder* opaque_delegate_builder);
void TfLiteOpaqueDelegateDelete(TfLiteOpaqueDelegate* delegate);
void* TfLiteOpaqueDelegateGetData(const TfLiteOpaqueDelegate* delegate);

#ifdef __cplusplus
}
#endif

/* ---- macros: they report to the context and return ---- */

#define TF_LITE_KERNEL_LOG(context, ...) (context)->ReportError((context), __VA_ARGS__)
#define TF_LITE_MAYBE_KERNEL_LOG(context, ...)                            \
  do {                                                                    \
    if ((context) != NULL) (context)->ReportError((context), __VA_ARGS__); \
  } while (0)
#define TF_LITE_ENSURE_MSG(context, value, ...)                \
  do {                                                         \
    if (!(value)) {                                            \
      TF_LITE_KERNEL_LOG((context), __FILE__ " " __VA_ARGS__); \
      return kTfLiteError;                                     \
    }                                                          \
  } while (0)
#define TF_LITE_ENSURE(context, a)                                                           \
  do {                                                                                       \
    if (!(a)) {                                                                              \
      TF_LITE_KERNEL_LOG((context), "%s:%d %s was not true.", __FILE__, __LINE__, #a);       \
      return kTfLiteError;                                                                   \
    }                                                                                        \
  } while (0)
#define TF_LITE_ENSURE_STATUS(a)                   \
  do {                                             \
    const TfLiteStatus oplet_status = (a);         \
    if (oplet_status != kTfLiteOk) return oplet_status; \
  } while (0)
#define TF_LITE_ENSURE_EQ(context, a, b)                                                                        \
  do {                                                                                                          \
    if ((a) != (b)) {                                                                                           \
      TF_LITE_KERNEL_LOG((context), "%s:%d %s != %s (%d != %d)", __FILE__, __LINE__, #a, #b, (int)(a), (int)(b)); \
      return kTfLiteError;                                                                                      \
    }                                                                                                           \
  } while (0)
#define TF_LITE_ENSURE_TYPES_EQ(context, a, b)                                                                            \
  do {                                                                                                                    \
    if ((a) != (b)) {                                                                                                     \
      TF_LITE_KERNEL_LOG((context), "%s:%d %s != %s (%s != %s)", __FILE__, __LINE__, #a, #b, TfLiteTypeGetName(a),        \
                         TfLiteTypeGetName(b));                                                                           \
      return kTfLiteError;                                                                                                \
    }                                                                                                                     \
  } while (0)
#define TF_LITE_ENSURE_NEAR(context, a, b, epsilon)                                                                        \
  do {                                                                                                                     \
    const double oplet_a = (double)(a), oplet_b = (double)(b);                                                             \
    if ((oplet_a > oplet_b ? oplet_a - oplet_b : oplet_b - oplet_a) > (epsilon)) {                                         \
      TF_LITE_KERNEL_LOG((context), "%s:%d %s not near %s (%f != %f)", __FILE__, __LINE__, #a, #b, oplet_a, oplet_b);      \
      return kTfLiteError;                                                                                                 \
    }                                                                                                                      \
  } while (0)
#define OPLET_FIRST(first, ...) first
#define OPLET_TEXT_OF(x) #x
#define OPLET_TEXT(x) OPLET_TEXT_OF(x)
/* A message, and what it formats, may follow the status. */
#define TF_LITE_ENSURE_OK(context, status, ...)                                                     \
  do {                                                                                              \
    const TfLiteStatus oplet_status = (status);                                                     \
    if (oplet_status != kTfLiteOk) {                                                                \
      if (sizeof(OPLET_FIRST("" __VA_ARGS__, 0)) > sizeof(""))                                      \
        TF_LITE_MAYBE_KERNEL_LOG((context), __FILE__ ":" OPLET_TEXT(__LINE__) ": " __VA_ARGS__);    \
      return oplet_status;                                                                          \
    }                                                                                               \
  } while (0)

#define TFL_UNREACHABLE() (__builtin_unreachable())

#ifdef __cplusplus
TfLiteQuantization TfLiteQuantizationClone(const TfLiteQuantization& src);
#endif
#endif
