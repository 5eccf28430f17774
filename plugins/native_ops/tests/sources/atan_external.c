/* Atan in C, by the names of TensorFlow 2.10 to 2.15, and its headers' paths. */
#include <math.h>

#include "tensorflow/lite/core/c/c_api_opaque.h"
#include "tensorflow/lite/core/c/registration_external.h"

static TfLiteStatus Prepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(context, node, 0);
  TF_LITE_OPAQUE_ENSURE(context, x != NULL);
  TfLiteIntArray* shape = TfLiteIntArrayCreate(TfLiteOpaqueTensorNumDims(x));
  for (int i = 0; i < shape->size; ++i) shape->data[i] = TfLiteOpaqueTensorDim(x, i);
  return TfLiteOpaqueContextResizeTensor(context, TfLiteOpaqueNodeGetOutput(context, node, 0), shape);
}

static TfLiteStatus Eval(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(context, node, 0);
  const float* from = TfLiteOpaqueTensorData(x);
  float* to = TfLiteOpaqueTensorData(TfLiteOpaqueNodeGetOutput(context, node, 0));
  for (size_t i = 0; i < TfLiteOpaqueTensorByteSize(x) / sizeof(float); ++i) to[i] = atanf(from[i]);
  return kTfLiteOk;
}

const TfLiteRegistrationExternal* AtanOpRegistrationExternal(void) {
  static TfLiteRegistrationExternal* op;
  if (!op) {
    op = TfLiteRegistrationExternalCreate(kTfLiteBuiltinCustom, "Atan", /*version=*/1);
    TfLiteRegistrationExternalSetPrepare(op, Prepare);
    TfLiteRegistrationExternalSetInvoke(op, Eval);
  }
  return op;
}
