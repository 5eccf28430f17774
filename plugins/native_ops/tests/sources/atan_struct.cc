// Atan as a TfLiteRegistration, which does not say its name.
#include <cmath>

#include "tensorflow/lite/c/common.h"

namespace tflite {
namespace ops {
namespace custom {
namespace {

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_EQ(context, node->inputs->size, 1);
  TF_LITE_ENSURE_EQ(context, node->outputs->size, 1);
  const TfLiteTensor& x = context->tensors[node->inputs->data[0]];
  TF_LITE_ENSURE_TYPES_EQ(context, x.type, kTfLiteFloat32);
  return context->ResizeTensor(context, &context->tensors[node->outputs->data[0]], TfLiteIntArrayCopy(x.dims));
}

TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor& x = context->tensors[node->inputs->data[0]];
  TfLiteTensor& y = context->tensors[node->outputs->data[0]];
  for (size_t i = 0; i < x.bytes / sizeof(float); ++i) y.data.f[i] = std::atan(x.data.f[i]);
  return kTfLiteOk;
}

}  // namespace

TfLiteRegistration* Register_ATAN() {
  static TfLiteRegistration registration = [] {
    TfLiteRegistration made{};
    made.prepare = Prepare;
    made.invoke = Eval;
    return made;
  }();
  return &registration;
}

}  // namespace custom
}  // namespace ops
}  // namespace tflite
