// Operators that fail, at each stage, and that do what they may not.
#include <cstdlib>
#include <cstring>

#include "tflite/c/c_api_opaque.h"
#include "tflite/c/common.h"

namespace {

int inits, frees;

TfLiteTensor* In(TfLiteContext* c, TfLiteNode* n) { return &c->tensors[n->inputs->data[0]]; }
TfLiteTensor* Out(TfLiteContext* c, TfLiteNode* n) { return &c->tensors[n->outputs->data[0]]; }
TfLiteStatus Shape(TfLiteContext* c, TfLiteNode* n) { return c->ResizeTensor(c, Out(c, n), TfLiteIntArrayCopy(In(c, n)->dims)); }
TfLiteStatus Copy(TfLiteContext* c, TfLiteNode* n) {
  std::memcpy(Out(c, n)->data.raw, In(c, n)->data.raw, In(c, n)->bytes);
  return kTfLiteOk;
}
TfLiteStatus Dynamic(TfLiteContext* c, TfLiteNode* n) {
  Out(c, n)->allocation_type = kTfLiteDynamic;
  return kTfLiteOk;
}
void* Init(TfLiteContext*, const char*, size_t) {
  ++inits;
  return std::malloc(1);
}
void Free(TfLiteContext*, void* data) {
  ++frees;
  std::free(data);
}

using Step = TfLiteStatus (*)(TfLiteContext*, TfLiteNode*);
TfLiteRegistration* Made(Step prepare, Step invoke) {
  auto* r = static_cast<TfLiteRegistration*>(std::calloc(1, sizeof(TfLiteRegistration)));
  r->init = Init;
  r->free = Free;
  r->prepare = prepare;
  r->invoke = invoke;
  return r;
}

}  // namespace

#define EXPORT extern "C" TFL_CAPI_EXPORT

EXPORT int Alive() { return inits - frees; }
EXPORT int Inits() { return inits; }

EXPORT TfLiteRegistration* Register_INIT_FAILS() {
  TfLiteRegistration* r = Made(Shape, Copy);
  r->init = [](TfLiteContext* c, const char*, size_t) -> void* {
    c->ReportError(c, "no %s of %d GB", "table", 3);
    return TfLiteKernelInitFailed();
  };
  return r;
}
EXPORT TfLiteRegistration* Register_PREPARE_FAILS() {
  return Made(
      [](TfLiteContext* c, TfLiteNode* n) {
        TF_LITE_ENSURE_TYPES_EQ(c, In(c, n)->type, kTfLiteInt8);
        return kTfLiteOk;
      },
      Copy);
}
EXPORT TfLiteRegistration* Register_PREPARE_IS_SILENT() {
  return Made([](TfLiteContext*, TfLiteNode*) { return kTfLiteDelegateError; }, Copy);
}
EXPORT TfLiteRegistration* Register_INVOKE_FAILS() {
  return Made(Shape, [](TfLiteContext* c, TfLiteNode* n) {
    if (In(c, n)->data.f[0] > 0) return Copy(c, n);
    c->ReportError(c, "the first value is %.1f,", In(c, n)->data.f[0]);
    c->ReportError(c, "which is not above 0");
    return kTfLiteError;
  });
}
EXPORT TfLiteRegistration* Register_INVOKE_IS_SILENT() {
  return Made(Shape, [](TfLiteContext*, TfLiteNode*) { return kTfLiteApplicationError; });
}
EXPORT TfLiteRegistration* Register_TALKS() {
  return Made(
      [](TfLiteContext* c, TfLiteNode*) {
        for (int i = 0; i < 10000; ++i) c->ReportError(c, "line %d of many\xff\n", i);
        return kTfLiteError;
      },
      Copy);
}
EXPORT TfLiteRegistration* Register_RESIZES_LATE() {
  return Made(Shape, [](TfLiteContext* c, TfLiteNode* n) {
    TfLiteIntArray* shape = TfLiteIntArrayCreate(1);
    shape->data[0] = 99;
    return c->ResizeTensor(c, Out(c, n), shape);
  });
}
EXPORT TfLiteRegistration* Register_RESIZES_A_CONSTANT() {
  return Made(
      [](TfLiteContext* c, TfLiteNode* n) {
        TfLiteIntArray* shape = TfLiteIntArrayCreate(1);
        shape->data[0] = 99;
        return c->ResizeTensor(c, &c->tensors[n->inputs->data[1]], shape);
      },
      Copy);
}
EXPORT TfLiteRegistration* Register_NEGATIVE() {
  return Made(
      [](TfLiteContext* c, TfLiteNode* n) {
        TfLiteIntArray* shape = TfLiteIntArrayCreate(1);
        shape->data[0] = -1;
        return c->ResizeTensor(c, Out(c, n), shape);
      },
      Copy);
}
EXPORT TfLiteRegistration* Register_HUGE() {
  return Made(
      [](TfLiteContext* c, TfLiteNode* n) {
        TfLiteIntArray* shape = TfLiteIntArrayCreate(3);
        for (int i = 0; i < 3; ++i) shape->data[i] = 2000000000;
        return c->ResizeTensor(c, Out(c, n), shape);
      },
      Copy);
}
EXPORT TfLiteRegistration* Register_MOVES_THE_OUTPUT() {
  return Made(Shape, [](TfLiteContext* c, TfLiteNode* n) {
    static float own[64];
    Out(c, n)->data.f = own;
    return kTfLiteOk;
  });
}
EXPORT TfLiteRegistration* Register_FEW_BYTES() {
  return Made(Dynamic, [](TfLiteContext* c, TfLiteNode* n) {
    if (Shape(c, n) != kTfLiteOk) return kTfLiteError;
    Out(c, n)->bytes -= 1;
    return kTfLiteOk;
  });
}
EXPORT TfLiteRegistration* Register_NO_BYTES() {
  return Made(Dynamic, [](TfLiteContext* c, TfLiteNode* n) {
    if (Shape(c, n) != kTfLiteOk) return kTfLiteError;
    std::free(Out(c, n)->data.raw);
    Out(c, n)->data.raw = nullptr;
    return kTfLiteOk;
  });
}
EXPORT TfLiteRegistration* Register_LATE_TYPE() {
  return Made(Dynamic, [](TfLiteContext* c, TfLiteNode* n) {
    Out(c, n)->type = kTfLiteInt64;
    return Shape(c, n);
  });
}
EXPORT TfLiteRegistration* Register_PACKED_TYPE() {
  return Made(
      [](TfLiteContext* c, TfLiteNode* n) {
        Out(c, n)->type = kTfLiteInt4;
        return kTfLiteOk;
      },
      Copy);
}
EXPORT TfLiteRegistration* Register_ODD_MEMORY() {
  return Made(
      [](TfLiteContext* c, TfLiteNode* n) {
        Out(c, n)->allocation_type = kTfLiteVariantObject;
        return kTfLiteOk;
      },
      Copy);
}
EXPORT TfLiteRegistration* Register_NO_SUCH_TEMPORARY() {
  return Made(
      [](TfLiteContext* c, TfLiteNode* n) {
        TfLiteIntArrayFree(n->temporaries);
        n->temporaries = TfLiteIntArrayCreate(1);
        n->temporaries->data[0] = 1 << 20;
        return Shape(c, n);
      },
      Copy);
}
EXPORT TfLiteRegistration* Register_DELEGATES() {
  return Made(
      [](TfLiteContext* c, TfLiteNode*) {
        TfLiteIntArray* plan;
        return c->GetExecutionPlan(c, &plan);
      },
      Copy);
}
EXPORT TfLiteRegistration* Register_BAD_STRINGS() {
  return Made(Dynamic, [](TfLiteContext* c, TfLiteNode* n) {
    TfLiteOpaqueTensor* out = reinterpret_cast<TfLiteOpaqueTensor*>(Out(c, n));
    const char* text = "abc";
    if (TfLiteOpaqueTensorWriteString(out, text, 3) != kTfLiteOk) return kTfLiteError;
    Out(c, n)->data.i32[1] = 1 << 20;
    return kTfLiteOk;
  });
}

// ---- functions that return no operator ----
EXPORT TfLiteRegistration* Register_NOTHING() { return nullptr; }
EXPORT TfLiteRegistration* Register_NO_INVOKE() { return Made(Shape, nullptr); }
EXPORT TfLiteRegistration* Register_BAD_VERSION() {
  TfLiteRegistration* r = Made(Shape, Copy);
  r->version = -3;
  return r;
}
EXPORT void* Register_TEXT() {
  static char text[] = "this is no operator, but text of more than sixty-four characters, which a function returns";
  return text;
}
EXPORT void* Register_NOWHERE() { return reinterpret_cast<void*>(0x1000); }
EXPORT TfLiteOperator* ZeroVersionOperator() { return TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Zero", 0, nullptr); }
EXPORT TfLiteOperator* OddCodeOperator() {
  TfLiteOperator* op = TfLiteOperatorCreate(static_cast<TfLiteBuiltinOperator>(5000), nullptr, 1, nullptr);
  TfLiteOperatorSetInvoke(op, [](TfLiteOpaqueContext*, TfLiteOpaqueNode*) { return kTfLiteOk; });
  return op;
}
EXPORT TfLiteOperator* NoInvokeOperator() { return TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Zero", 1, nullptr); }
