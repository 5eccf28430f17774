/* TfLiteIntArray, TfLiteFloatArray and the names and sizes of types. All memory is malloc's: libraries free it with ours, or free. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  size_t bytes;
} TYPES[TYPE_COUNT] = {
    {"NOTYPE", 0},     {"FLOAT32", 4},    {"INT32", 4},    {"UINT8", 1},    {"INT64", 8},         {"STRING", 0},
    {"BOOL", 1},       {"INT16", 2},      {"COMPLEX64", 8}, {"INT8", 1},    {"FLOAT16", 2},       {"FLOAT64", 8},
    {"COMPLEX128", 16}, {"UINT64", 8},    {"RESOURCE", 0}, {"VARIANT", 0},  {"UINT32", 4},        {"UINT16", 2},
    {"INT4", 0},       {"BFLOAT16", 2},   {"INT2", 0},     {"UINT4", 0},    {"FLOAT8_E4M3FN", 1}, {"FLOAT8_E5M2", 1},
};

API const char *TfLiteTypeGetName(int32_t type) { return type >= 0 && type < TYPE_COUNT ? TYPES[type].name : "Unknown type"; }

size_t type_bytes(int32_t type) { return type >= 0 && type < TYPE_COUNT ? TYPES[type].bytes : 0; }

IntArray *int_array(const int *values, int count) {
  IntArray *made = TfLiteIntArrayCreate(count);
  if (made && count) memcpy(made->data, values, sizeof(int) * (size_t)count);
  return made;
}

API size_t TfLiteIntArrayGetSizeInBytes(int size) { return sizeof(IntArray) + sizeof(int) * (size_t)size; }

API IntArray *TfLiteIntArrayCreate(int size) {
  IntArray *made = size < 0 ? NULL : malloc(TfLiteIntArrayGetSizeInBytes(size));
  if (made) made->size = size;
  return made;
}

API int TfLiteIntArrayEqualsArray(const IntArray *a, int size, const int *values) {
  if (!a) return size == 0;
  return a->size == size && (!size || !memcmp(a->data, values, sizeof(int) * (size_t)size));
}

API int TfLiteIntArrayEqual(const IntArray *a, const IntArray *b) {
  return a == b || (a && b && TfLiteIntArrayEqualsArray(a, b->size, b->data));
}

API IntArray *TfLiteIntArrayCopy(const IntArray *a) { return a ? int_array(a->data, a->size) : NULL; }

API void TfLiteIntArrayFree(IntArray *a) { free(a); }

API int TfLiteFloatArrayGetSizeInBytes(int size) { return (int)(sizeof(FloatArray) + sizeof(float) * (size_t)size); }

API FloatArray *TfLiteFloatArrayCreate(int size) {
  FloatArray *made = size < 0 ? NULL : malloc(sizeof(FloatArray) + sizeof(float) * (size_t)size);
  if (made) made->size = size;
  return made;
}

API FloatArray *TfLiteFloatArrayCopy(const FloatArray *a) {
  FloatArray *made = a ? TfLiteFloatArrayCreate(a->size) : NULL;
  if (made && a->size) memcpy(made->data, a->data, sizeof(float) * (size_t)a->size);
  return made;
}

API void TfLiteFloatArrayFree(FloatArray *a) { free(a); }
