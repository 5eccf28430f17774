// Atan by the present opaque API, as the guide for custom operators tells it, with the names and counts of today's headers.
#include <cmath>

#include "tflite/c/c_api.h"
#include "tflite/c/c_api_opaque.h"

namespace {

TfLiteStatus Prepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueNodeNumberOfInputs(node), 1);
  TF_LITE_OPAQUE_ENSURE_EQ(context, TfLiteOpaqueNodeNumberOfOutputs(node), 1);
  const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(context, node, 0);
  TfLiteOpaqueTensor* y = TfLiteOpaqueNodeGetOutput(context, node, 0);
  TF_LITE_OPAQUE_ENSURE_TYPES_EQ(context, TfLiteOpaqueTensorType(x), kTfLiteFloat32);
  TF_LITE_OPAQUE_ENSURE_TYPES_EQ(context, TfLiteOpaqueTensorType(y), kTfLiteFloat32);
  TfLiteIntArray* shape = TfLiteIntArrayCreate(TfLiteOpaqueTensorNumDims(x));
  for (int i = 0; i < shape->size; ++i) shape->data[i] = TfLiteOpaqueTensorDim(x, i);
  return TfLiteOpaqueContextResizeTensor(context, y, shape);
}

TfLiteStatus Eval(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(context, node, 0);
  const float* from = static_cast<const float*>(TfLiteOpaqueTensorData(x));
  float* to = static_cast<float*>(TfLiteOpaqueTensorData(TfLiteOpaqueNodeGetOutput(context, node, 0)));
  const size_t count = TfLiteOpaqueTensorByteSize(x) / sizeof(float);
  for (size_t i = 0; i < count; ++i) to[i] = std::atan(from[i]);
  return kTfLiteOk;
}

}  // namespace

extern "C" TFL_CAPI_EXPORT const TfLiteOperator* AtanOpRegistration() {
  static const TfLiteOperator* const op = [] {
    TfLiteOperator* made = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Atan", /*version=*/1, /*user_data=*/nullptr);
    TfLiteOperatorSetPrepare(made, Prepare);
    TfLiteOperatorSetInvoke(made, Eval);
    return made;
  }();
  return op;
}

#ifdef TWICE
extern "C" TFL_CAPI_EXPORT const TfLiteOperator* AtanOperator() {
  TfLiteOperator* made = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Atan", 1, nullptr);
  TfLiteOperatorSetInvoke(made, Eval);
  return made;
}
#endif
