/* The functions on TfLiteOpaqueTensor, of c_api_opaque.h: values, strings, and the builder of new tensors. */
#include "graph.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The functions of common.h and c_api.h by which these are answered; the handle is the struct. */
int32_t TfLiteTensorGetAllocationStrategy(const Tensor *);
int32_t TfLiteTensorGetBufferAddressStability(const Tensor *);
int32_t TfLiteTensorGetDataStability(const Tensor *);
int32_t TfLiteTensorGetDataKnownStep(const Tensor *);
int32_t TfLiteTensorGetShapeKnownStep(const Tensor *);
Status TfLiteTensorCopyFromBuffer(Tensor *, const void *, size_t);
Status TfLiteTensorCopyToBuffer(const Tensor *, void *, size_t);

API int32_t TfLiteOpaqueTensorType(const Tensor *t) { return t->type; }
API int32_t TfLiteOpaqueTensorNumDims(const Tensor *t) { return t->dims ? t->dims->size : -1; }
API int32_t TfLiteOpaqueTensorDim(const Tensor *t, int32_t i) { return t->dims->data[i]; }
API Status TfLiteOpaqueTensorGetNumDimsSignature(const Tensor *t, int32_t *count) {
  *count = t->dims_signature ? t->dims_signature->size : -1;
  return OK;
}
API Status TfLiteOpaqueTensorGetDimSignature(const Tensor *t, int32_t i, int32_t *length) {
  *length = TfLiteTensorGetDimsSignature(t)->data[i];
  return OK;
}
API int TfLiteOpaqueTensorIsVariable(const Tensor *t) { return t->is_variable; }
API size_t TfLiteOpaqueTensorByteSize(const Tensor *t) { return t->bytes; }
API void *TfLiteOpaqueTensorData(const Tensor *t) { return t ? t->data : NULL; }
API int32_t TfLiteOpaqueTensorGetAllocationType(const Tensor *t) { return t->allocation_type; }
API int32_t TfLiteOpaqueTensorGetAllocationStrategy(const Tensor *t) { return TfLiteTensorGetAllocationStrategy(t); }
API int32_t TfLiteOpaqueTensorGetBufferAddressStability(const Tensor *t) { return TfLiteTensorGetBufferAddressStability(t); }
API int32_t TfLiteOpaqueTensorGetDataStability(const Tensor *t) { return TfLiteTensorGetDataStability(t); }
API int32_t TfLiteOpaqueTensorGetDataKnownStep(const Tensor *t) { return TfLiteTensorGetDataKnownStep(t); }
API int32_t TfLiteOpaqueTensorGetShapeKnownStep(const Tensor *t) { return TfLiteTensorGetShapeKnownStep(t); }
API const char *TfLiteOpaqueTensorName(const Tensor *t) { return t->name; }
API Quantization TfLiteOpaqueTensorGetQuantization(const Tensor *t) { return t->quantization; }
API QuantizationParams TfLiteOpaqueTensorGetQuantizationParams(const Tensor *t) { return t->params; }
API Status TfLiteOpaqueTensorCopyFromBuffer(Tensor *t, const void *data, size_t bytes) {
  return TfLiteTensorCopyFromBuffer(t, data, bytes);
}
API Status TfLiteOpaqueTensorCopyToBuffer(const Tensor *t, void *data, size_t bytes) {
  return TfLiteTensorCopyToBuffer(t, data, bytes);
}
API void TfLiteOpaqueTensorSetAllocationTypeToDynamic(Tensor *t) {
  if (t->allocation_type == MEMORY_DYNAMIC) return;
  TfLiteTensorDataFree(t);
  t->allocation_type = MEMORY_DYNAMIC;
}
API void TfLiteOpaqueTensorSetNonCpuAllocation(Tensor *t) { t->allocation_type = MEMORY_NON_CPU; }

/* ---- strings: their number, one more offset than that, counted from the start, then the characters ------------------------------ */

API int TfLiteOpaqueTensorGetStringCount(const Tensor *t) { return t->data ? *(const int32_t *)t->data : 0; }

API Status TfLiteOpaqueTensorGetString(const Tensor *t, int i, const char **text, int *length) {
  const int32_t *head = t->data;
  if (!head || i < 0 || i >= head[0]) return ERROR;
  *text = (const char *)head + head[1 + i];
  *length = head[2 + i] - head[1 + i];
  return OK;
}

API Status TfLiteOpaqueTensorWriteStrings(Tensor *t, const char *const *texts, int count, const int *lengths) {
  if (count < 0) return ERROR;
  size_t bytes = sizeof(int32_t) * ((size_t)count + 2);
  for (int i = 0; i < count; i++) {
    if (lengths[i] < 0) return ERROR;
    bytes += (size_t)lengths[i];
  }
  if (bytes > INT32_MAX) return ERROR; /* the offsets are 32 bits wide */
  char *data = malloc(bytes);
  IntArray *dims = int_array(&count, 1);
  if (!data || !dims) return free(data), free(dims), ERROR;
  int32_t *head = (int32_t *)data, at = (int32_t)(sizeof(int32_t) * ((size_t)count + 2));
  head[0] = count;
  for (int i = 0; i < count; i++) {
    head[1 + i] = at;
    memcpy(data + at, texts[i], (size_t)lengths[i]);
    at += lengths[i];
  }
  head[1 + count] = at;
  TfLiteTensorReset(TYPE_STRING, t->name, dims, t->params, data, bytes, MEMORY_DYNAMIC, t->allocation, t->is_variable, t);
  return OK;
}

API Status TfLiteOpaqueTensorWriteString(Tensor *t, const char *text, int length) {
  return TfLiteOpaqueTensorWriteStrings(t, &text, 1, &length);
}

/* ---- TfLiteOpaqueTensorBuilder -------------------------------------------------------------------------------------------------- */

typedef struct {
  int32_t type;
  void *data;
  int32_t allocation_type;
  QuantizationParams params;
  Quantization quantization;
} Builder;

API Builder *TfLiteOpaqueTensorBuilderCreate(void) { return calloc(1, sizeof(Builder)); }
API void TfLiteOpaqueTensorBuilderDelete(Builder *b) { free(b); }
API Builder *TfLiteOpaqueTensorBuilderSetType(Builder *b, int32_t type) { return b->type = type, b; }
API Builder *TfLiteOpaqueTensorBuilderSetData(Builder *b, void *data) { return b->data = data, b; }
API Builder *TfLiteOpaqueTensorBuilderSetAllocationType(Builder *b, int32_t type) { return b->allocation_type = type, b; }
API Builder *TfLiteOpaqueTensorBuilderSetQuantizationParams(Builder *b, QuantizationParams params) { return b->params = params, b; }
API Builder *TfLiteOpaqueTensorBuilderSetQuantization(Builder *b, Quantization q) { return b->quantization = q, b; }

API Status TfLiteOpaqueContextAddTensor(Context *c, Builder *b, int *index) {
  const bool dynamic = b->allocation_type == MEMORY_DYNAMIC;
  if (!dynamic && b->allocation_type != MEMORY_ARENA_RW && b->allocation_type != MEMORY_ARENA_RW_PERSISTENT) {
    context_report(graph_of(c),
                   "Invalid allocation type '%d'.  Allocation type for TfLiteOpaqueContextAddTensor must be one of: "
                   "'kTfLiteDynamic', 'kTfLiteArenaRw' or 'kTfLiteArenaRwPersistent'.",
                   b->allocation_type);
    return ERROR;
  }
  if (dynamic != (b->data != NULL)) {
    context_report(graph_of(c), dynamic ? "For tensors of allocation type 'kTfLiteDynamic' 'data' must be provided."
                                        : "For tensors of allocation type 'kTfLiteArenaRw' or 'kTfLiteArenaRwPersistent' 'data' "
                                          "must not be provided.");
    return ERROR;
  }
  int at = -1;
  if (context_add_tensors(c, 1, &at) != OK) return ERROR;
  Tensor *t = &c->tensors[at];
  t->type = b->type;
  t->data = b->data;
  t->allocation_type = b->allocation_type;
  t->params = b->params;
  t->quantization = b->quantization;
  if (index) *index = at;
  return OK;
}
