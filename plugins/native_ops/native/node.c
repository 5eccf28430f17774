/* The functions on TfLiteOpaqueNode, of c_api_opaque.h. */
#include "graph.h"

#include <stdlib.h>

static Tensor *tensor_of(const Context *c, const IntArray *indices, int i) {
  return indices && i >= 0 && i < indices->size ? context_tensor(c, indices->data[i]) : NULL;
}

static Status give(const IntArray *indices, const int **values, int *count) {
  *values = indices ? indices->data : NULL;
  *count = indices ? indices->size : 0;
  return OK;
}

static int index_of(const IntArray *indices, int i) { return indices && i >= 0 && i < indices->size ? indices->data[i] : -1; }

API const Tensor *TfLiteOpaqueNodeGetInput(const Context *c, const Node *n, int i) { return tensor_of(c, n->inputs, i); }
API Tensor *TfLiteOpaqueNodeGetOutput(Context *c, const Node *n, int i) { return tensor_of(c, n->outputs, i); }
API int TfLiteOpaqueNodeNumberOfInputs(const Node *n) { return n->inputs->size; }
API int TfLiteOpaqueNodeNumberOfOutputs(const Node *n) { return n->outputs->size; }
API void *TfLiteOpaqueNodeGetUserData(const Node *n) { return n->user_data; }
API void *TfLiteOpaqueNodeGetBuiltinData(const Node *n) { return n->builtin_data; }
API Status TfLiteOpaqueNodeGetCustomInitialData(const Node *n, const void **data, int *size) {
  *data = n->custom_initial_data;
  *size = n->custom_initial_data_size;
  return OK;
}
API Status TfLiteOpaqueNodeInputs(const Node *n, const int **values, int *count) { return give(n->inputs, values, count); }
API Status TfLiteOpaqueNodeOutputs(const Node *n, const int **values, int *count) { return give(n->outputs, values, count); }
API Status TfLiteOpaqueNodeTemporaries(const Node *n, const int **values, int *count) { return give(n->temporaries, values, count); }
API Status TfLiteOpaqueNodeSetTemporaries(Node *n, const int *values, int count) {
  IntArray *made = count < 0 ? NULL : int_array(values, count);
  if (!made) return ERROR;
  free(n->temporaries);
  n->temporaries = made;
  return OK;
}
API int TfLiteOpaqueNodeGetInputTensorIndex(const Node *n, int i) { return index_of(n->inputs, i); }
API int TfLiteOpaqueNodeGetOutputTensorIndex(const Node *n, int i) { return index_of(n->outputs, i); }
