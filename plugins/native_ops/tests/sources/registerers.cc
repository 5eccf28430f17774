// Functions that register operators with LiteRT's C++ resolver, which is declared here as far as they need it. With RESOLVER_INSIDE the
// library has a resolver of its own and tells nobody.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "tflite/core/c/common.h"

namespace tflite {

enum BuiltinOperator : int32_t {};

#ifdef RESOLVER_INSIDE
#define VISIBILITY "hidden"
#else
#define VISIBILITY "default"
#endif

class MutableOpResolver {
 public:
  void AddBuiltin(BuiltinOperator op, const TfLiteRegistration* registration, int version);
  void AddBuiltin(BuiltinOperator op, const TfLiteRegistration* registration, int min_version, int max_version);
  __attribute__((visibility(VISIBILITY))) void AddCustom(const char* name, const TfLiteRegistration* registration, int version);
  void AddCustom(const char* name, const TfLiteRegistration* registration, int min_version, int max_version);
};

#ifdef RESOLVER_INSIDE
void MutableOpResolver::AddCustom(const char*, const TfLiteRegistration*, int) { std::abort(); }
#endif

namespace {

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor& x = context->tensors[node->inputs->data[0]];
  return context->ResizeTensor(context, &context->tensors[node->outputs->data[0]], TfLiteIntArrayCopy(x.dims));
}

template <typename Function>
TfLiteStatus Each(TfLiteContext* context, TfLiteNode* node, Function function) {
  const TfLiteTensor& x = context->tensors[node->inputs->data[0]];
  TfLiteTensor& y = context->tensors[node->outputs->data[0]];
  for (size_t i = 0; i < x.bytes / sizeof(float); ++i) y.data.f[i] = function(x.data.f[i]);
  return kTfLiteOk;
}

TfLiteStatus Atan(TfLiteContext* context, TfLiteNode* node) {
  return Each(context, node, [](float x) { return std::atan(x); });
}

TfLiteStatus Tenfold(TfLiteContext* context, TfLiteNode* node) {
  return Each(context, node, [](float x) { return 10 * x; });
}

// On the stack of its caller, and gone afterwards: LiteRT copies what is registered.
TfLiteRegistration Made(TfLiteStatus (*invoke)(TfLiteContext*, TfLiteNode*)) {
  TfLiteRegistration made{};
  made.prepare = Prepare;
  made.invoke = invoke;
  return made;
}

}  // namespace

#ifndef RESOLVER_INSIDE
namespace ops {
void AddAll(MutableOpResolver* resolver) {
  const TfLiteRegistration atan = Made(Atan), tenfold = Made(Tenfold);
  char name[] = "Atan";
  resolver->AddCustom(name, &atan, 1);
  name[0] = 0;
  resolver->AddCustom("Tenfold", &tenfold, 2, 3);
  resolver->AddBuiltin(BuiltinOperator(0), &tenfold, 1, 2);
  resolver->AddBuiltin(BuiltinOperator(59), &tenfold, 1);
  resolver->AddBuiltin(BuiltinOperator(60), nullptr, 1);
}
}  // namespace ops
#endif

}  // namespace tflite

using tflite::MutableOpResolver;

extern "C" void AddAtan(MutableOpResolver* resolver) {
  const TfLiteRegistration atan = tflite::Made(tflite::Atan);
  resolver->AddCustom("Atan", &atan, 1);
}

#ifndef RESOLVER_INSIDE
void AddAtanInCpp(MutableOpResolver* resolver) { AddAtan(resolver); }

extern "C" {
void AddNothing(MutableOpResolver*) {}

void AddNameless(MutableOpResolver* resolver) {
  const TfLiteRegistration atan = tflite::Made(tflite::Atan);
  resolver->AddCustom("", &atan, 1);
}

void AddUnknown(MutableOpResolver* resolver) {
  const TfLiteRegistration atan = tflite::Made(tflite::Atan);
  resolver->AddBuiltin(tflite::BuiltinOperator(4711), &atan, 1);
}

void AddVersions(MutableOpResolver* resolver) {
  const TfLiteRegistration atan = tflite::Made(tflite::Atan);
  resolver->AddCustom("Atan", &atan, 1, 1 << 30);
}

void AddIdle(MutableOpResolver* resolver) {
  const TfLiteRegistration idle = tflite::Made(nullptr);
  resolver->AddCustom("Idle", &idle, 1);
}

void AddElsewhere(MutableOpResolver*) {
  static int64_t own[64];
  AddAtan(reinterpret_cast<MutableOpResolver*>(own));
}
}
#endif
