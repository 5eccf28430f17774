/* The functions on TfLiteTensor, of common.h and c_api.h.
 *
 * What is DYNAMIC or PERSISTENT_RO belongs to C and is malloc's, as libraries hand it to realloc and free. Memory of numpy's is
 * never marked so. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

/* Some kernels read a vector's width beyond the end. */
enum { EXTRA_BYTES = 16, ALIGNMENT = 16 };

static bool is_owned(const Tensor *t) { return t->allocation_type == MEMORY_DYNAMIC || t->allocation_type == MEMORY_PERSISTENT_RO; }

static bool is_usable(const Allocator *a) { return a && a->allocate && a->deallocate; }

API void TfLiteTensorDataFreeWithAllocator(Tensor *t, Allocator *allocator) {
  if (!t) return;
  if (is_owned(t) && t->data) {
    if (is_usable(allocator))
      allocator->deallocate(allocator->data, t->data, t->bytes + EXTRA_BYTES, ALIGNMENT);
    else
      free(t->data);
  }
  t->data = NULL;
}

API void TfLiteTensorDataFree(Tensor *t) { TfLiteTensorDataFreeWithAllocator(t, NULL); }

API void TfLiteQuantizationFree(Quantization *q) {
  if (!q) return;
  if (q->type == QUANTIZATION_AFFINE && q->params) {
    AffineQuantization *affine = q->params;
    free(affine->scale);
    free(affine->zero_point);
  }
  if (q->type == QUANTIZATION_MULTI_AXIS && q->params) free(((MultiAxisQuantization *)q->params)->quantized_dimensions);
  if (q->type != QUANTIZATION_NONE) free(q->params);
  q->params = NULL;
  q->type = QUANTIZATION_NONE;
}

API void TfLiteSparsityFree(Sparsity *s) {
  if (!s) return;
  free(s->traversal_order);
  free(s->block_map);
  for (int i = 0; s->dim_metadata && i < s->dim_metadata_size; i++) {
    free(s->dim_metadata[i].array_segments);
    free(s->dim_metadata[i].array_indices);
  }
  free(s->dim_metadata);
  free(s);
}

API void TfLiteTensorFree(Tensor *t) {
  if (!t) return;
  TfLiteTensorDataFree(t);
  free(t->dims);
  t->dims = NULL;
  free((void *)t->dims_signature);
  t->dims_signature = NULL;
  TfLiteQuantizationFree(&t->quantization);
  TfLiteSparsityFree(t->sparsity);
  t->sparsity = NULL;
}

API void TfLiteTensorReset(int32_t type, const char *name, IntArray *dims, QuantizationParams params, char *data, size_t bytes,
                           int32_t allocation_type, const void *allocation, bool is_variable, Tensor *t) {
  TfLiteTensorFree(t);
  t->type = type;
  t->name = name;
  t->dims = dims;
  t->params = params;
  t->data = data;
  t->bytes = bytes;
  t->allocation_type = allocation_type;
  t->allocation = allocation;
  t->is_variable = is_variable;
}

API Status TfLiteTensorResizeMaybeCopyWithAllocator(size_t bytes, Tensor *t, bool preserve, Allocator *allocator) {
  if (!t || bytes > SIZE_MAX - EXTRA_BYTES) return ERROR;
  if (!is_owned(t)) return OK;
  if (t->data && bytes <= t->bytes) return t->bytes = bytes, OK;
  const size_t wanted = bytes + EXTRA_BYTES, had = t->data ? t->bytes : 0;
  void *data;
  if (is_usable(allocator)) {
    data = allocator->allocate(allocator->data, wanted, ALIGNMENT);
    if (data && preserve && had) memcpy(data, t->data, had);
    if (data && t->data) allocator->deallocate(allocator->data, t->data, t->bytes + EXTRA_BYTES, ALIGNMENT);
  } else if (preserve) {
    data = realloc(t->data, wanted);
  } else {
    data = malloc(wanted);
    if (data) free(t->data);
  }
  if (!data) return ERROR;
  t->data = data;
  t->bytes = bytes;
  return OK;
}

API Status TfLiteTensorResizeMaybeCopy(size_t bytes, Tensor *t, bool preserve) {
  return TfLiteTensorResizeMaybeCopyWithAllocator(bytes, t, preserve, NULL);
}

API Status TfLiteTensorReallocWithAllocator(size_t bytes, Tensor *t, Allocator *allocator) {
  return TfLiteTensorResizeMaybeCopyWithAllocator(bytes, t, true, allocator);
}

API Status TfLiteTensorRealloc(size_t bytes, Tensor *t) { return TfLiteTensorReallocWithAllocator(bytes, t, NULL); }

API Status TfLiteTensorCopy(const Tensor *from, Tensor *to) {
  if (!from || !to) return OK;
  if (from->bytes != to->bytes) return ERROR;
  if (from == to) return OK;
  if (from->bytes && (!from->data || !to->data)) return ERROR;
  to->type = from->type;
  free(to->dims);
  to->dims = TfLiteIntArrayCopy(from->dims);
  if (from->bytes) memcpy(to->data, from->data, from->bytes);
  to->buffer_handle = from->buffer_handle;
  to->data_is_stale = from->data_is_stale;
  to->delegate = from->delegate;
  return OK;
}

static Quantization quantization_clone(const Quantization *from) {
  static const size_t BYTES[] = {0, sizeof(AffineQuantization), sizeof(BlockwiseQuantization), sizeof(MultiAxisQuantization)};
  Quantization to = {QUANTIZATION_NONE, NULL};
  if (from->type < QUANTIZATION_AFFINE || from->type > QUANTIZATION_MULTI_AXIS || !from->params) return to;
  if (!(to.params = malloc(BYTES[from->type]))) return to;
  to.type = from->type;
  memcpy(to.params, from->params, BYTES[from->type]);
  if (to.type == QUANTIZATION_AFFINE) {
    AffineQuantization *affine = to.params;
    affine->scale = TfLiteFloatArrayCopy(affine->scale);
    affine->zero_point = TfLiteIntArrayCopy(affine->zero_point);
  }
  if (to.type == QUANTIZATION_MULTI_AXIS) {
    MultiAxisQuantization *axes = to.params;
    axes->quantized_dimensions = TfLiteIntArrayCopy(axes->quantized_dimensions);
  }
  return to;
}

/* TfLiteQuantizationClone(const TfLiteQuantization &), which common.h declares for C++ */
API Quantization _Z23TfLiteQuantizationCloneRK18TfLiteQuantization(const Quantization *from) { return quantization_clone(from); }

static Sparsity *sparsity_clone(const Sparsity *from) {
  Sparsity *to = from ? calloc(1, sizeof *to) : NULL;
  if (!to) return NULL;
  to->traversal_order = TfLiteIntArrayCopy(from->traversal_order);
  to->block_map = TfLiteIntArrayCopy(from->block_map);
  if (from->dim_metadata && from->dim_metadata_size > 0)
    to->dim_metadata = calloc((size_t)from->dim_metadata_size, sizeof *to->dim_metadata);
  for (int i = 0; to->dim_metadata && i < from->dim_metadata_size; i++) {
    to->dim_metadata[i] = from->dim_metadata[i];
    to->dim_metadata[i].array_segments = TfLiteIntArrayCopy(from->dim_metadata[i].array_segments);
    to->dim_metadata[i].array_indices = TfLiteIntArrayCopy(from->dim_metadata[i].array_indices);
    to->dim_metadata_size = i + 1;
  }
  return to;
}

API Tensor TfLiteTensorClone(Tensor from) {
  Tensor to = from;
  if (from.data && is_owned(&from)) {
    if (!(to.data = malloc(from.bytes + EXTRA_BYTES))) return (Tensor){0};
    memcpy(to.data, from.data, from.bytes);
  }
  to.dims = TfLiteIntArrayCopy(from.dims);
  to.dims_signature = TfLiteIntArrayCopy(from.dims_signature);
  to.quantization = quantization_clone(&from.quantization);
  to.sparsity = sparsity_clone(from.sparsity);
  return to;
}

API const IntArray *TfLiteTensorGetDimsSignature(const Tensor *t) {
  return t->dims_signature && t->dims_signature->size ? t->dims_signature : t->dims;
}

/* ---- where a tensor's memory comes from, and how long its value holds: TfLiteAllocationStrategy, RunStability, RunStep ---------- */

static int32_t by_memory(const Tensor *t, const int32_t *of) {
  return t->allocation_type >= 0 && t->allocation_type < MEMORY_COUNT ? of[t->allocation_type] : 0;
}
API int32_t TfLiteTensorGetAllocationStrategy(const Tensor *t) {
  static const int32_t OF[MEMORY_COUNT] = {1, 2, 3, 3, 4, 4, 0, 5, 0};
  return by_memory(t, OF);
}
API int32_t TfLiteTensorGetBufferAddressStability(const Tensor *t) {
  static const int32_t OF[MEMORY_COUNT] = {3, 3, 1, 1, 2, 2, 0, 3, 0};
  return by_memory(t, OF);
}
API int32_t TfLiteTensorGetDataStability(const Tensor *t) {
  static const int32_t OF[MEMORY_COUNT] = {3, 3, 2, 3, 2, 2, 0, 2, 0};
  return by_memory(t, OF);
}
API int32_t TfLiteTensorGetDataKnownStep(const Tensor *t) {
  static const int32_t OF[MEMORY_COUNT] = {1, 1, 3, 3, 3, 2, 0, 3, 0};
  return by_memory(t, OF);
}
API int32_t TfLiteTensorGetShapeKnownStep(const Tensor *t) {
  static const int32_t OF[MEMORY_COUNT] = {1, 1, 2, 2, 3, 2, 0, 3, 0};
  return by_memory(t, OF);
}

/* ---- c_api.h ------------------------------------------------------------------------------------------------------------------- */

API int32_t TfLiteTensorType(const Tensor *t) { return t->type; }
API int32_t TfLiteTensorNumDims(const Tensor *t) { return t->dims ? t->dims->size : -1; }
API int32_t TfLiteTensorDim(const Tensor *t, int32_t i) { return t->dims->data[i]; }
API size_t TfLiteTensorByteSize(const Tensor *t) { return t->bytes; }
API void *TfLiteTensorData(const Tensor *t) { return t->data; }
API const char *TfLiteTensorName(const Tensor *t) { return t->name; }
API QuantizationParams TfLiteTensorQuantizationParams(const Tensor *t) { return t->params; }
API Status TfLiteTensorCopyFromBuffer(Tensor *t, const void *data, size_t bytes) {
  if (t->bytes != bytes || (bytes && !t->data)) return ERROR;
  if (bytes) memcpy(t->data, data, bytes);
  return OK;
}
API Status TfLiteTensorCopyToBuffer(const Tensor *t, void *data, size_t bytes) {
  if (t->bytes != bytes || (bytes && !t->data)) return ERROR;
  if (bytes) memcpy(data, t->data, bytes);
  return OK;
}
API const char *TfLiteVersion(void) { return "2.19.0"; }
API const char *TfLiteExtensionApisVersion(void) { return "2.19.0"; }
API int TfLiteSchemaVersion(void) { return 3; }
/* What init returns where it fails. */
API void *TfLiteKernelInitFailed(void) { return (void *)(intptr_t)-1; }
