// Atan by callbacks that get the operator's own data, which counts them.
#include <cmath>

#include "tensorflow/lite/c/c_api_opaque.h"

namespace {
struct Counts {
  int init, free, prepare, invoke;
} counts;
}  // namespace

extern "C" TFL_CAPI_EXPORT int AtanCount(int which) {
  const int all[] = {counts.init, counts.free, counts.prepare, counts.invoke};
  return all[which];
}

extern "C" TFL_CAPI_EXPORT const TfLiteOperator* AtanOperator() {
  TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Atan", 1, &counts);
  TfLiteOperatorSetInitWithData(op, [](void* data, TfLiteOpaqueContext*, const char*, size_t length) -> void* {
    static_cast<Counts*>(data)->init++;
    return new size_t(length);
  });
  TfLiteOperatorSetFreeWithData(op, [](void* data, TfLiteOpaqueContext*, void* state) {
    static_cast<Counts*>(data)->free++;
    delete static_cast<size_t*>(state);
  });
  TfLiteOperatorSetPrepareWithData(op, [](void* data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
    static_cast<Counts*>(data)->prepare++;
    if (TfLiteOpaqueNodeGetUserData(node) == nullptr) return kTfLiteError;
    const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(context, node, 0);
    TfLiteIntArray* shape = TfLiteIntArrayCreate(TfLiteOpaqueTensorNumDims(x));
    for (int i = 0; i < shape->size; ++i) shape->data[i] = TfLiteOpaqueTensorDim(x, i);
    return TfLiteOpaqueContextResizeTensor(context, TfLiteOpaqueNodeGetOutput(context, node, 0), shape);
  });
  TfLiteOperatorSetInvokeWithData(op, [](void* data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
    static_cast<Counts*>(data)->invoke++;
    const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(context, node, 0);
    const float* from = static_cast<const float*>(TfLiteOpaqueTensorData(x));
    float* to = static_cast<float*>(TfLiteOpaqueTensorData(TfLiteOpaqueNodeGetOutput(context, node, 0)));
    for (size_t i = 0; i < TfLiteOpaqueTensorByteSize(x) / sizeof(float); ++i) to[i] = std::atan(from[i]);
    return kTfLiteOk;
  });
  return op;
}
