// Operators that use what Atan does not: options, temporaries, added tensors, dynamic outputs, strings, types, built-in options.
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "tflite/c/builtin_op_data.h"
#include "tflite/c/c_api_opaque.h"
#include "tflite/c/common.h"

namespace {

TfLiteTensor* In(TfLiteContext* c, TfLiteNode* n, int i) { return &c->tensors[n->inputs->data[i]]; }
TfLiteTensor* Out(TfLiteContext* c, TfLiteNode* n, int i) { return &c->tensors[n->outputs->data[i]]; }
TfLiteIntArray* Shape(int length) {
  TfLiteIntArray* shape = TfLiteIntArrayCreate(1);
  shape->data[0] = length;
  return shape;
}
TfLiteStatus SameShape(TfLiteContext* c, TfLiteNode* n) {
  return c->ResizeTensor(c, Out(c, n, 0), TfLiteIntArrayCopy(In(c, n, 0)->dims));
}
TfLiteRegistration Struct(TfLiteStatus (*prepare)(TfLiteContext*, TfLiteNode*), TfLiteStatus (*invoke)(TfLiteContext*, TfLiteNode*)) {
  TfLiteRegistration made{};
  made.prepare = prepare;
  made.invoke = invoke;
  return made;
}

// ---- the values above a limit: options, a tensor that init adds, a temporary, a dynamic output ----
struct Above {
  int scratch;
  float limit;
};

}  // namespace

extern "C" TFL_CAPI_EXPORT TfLiteRegistration* Register_ABOVE() {
  static TfLiteRegistration r{};
  r.init = [](TfLiteContext* c, const char* options, size_t length) -> void* {
    Above* made = static_cast<Above*>(std::malloc(sizeof(Above)));
    made->limit = 0;
    if (length == sizeof(float)) std::memcpy(&made->limit, options, length);
    c->AddTensors(c, 1, &made->scratch);
    return made;
  };
  r.free = [](TfLiteContext*, void* data) { std::free(data); };
  r.prepare = [](TfLiteContext* c, TfLiteNode* n) {
    Above* above = static_cast<Above*>(n->user_data);
    TfLiteIntArrayFree(n->temporaries);
    n->temporaries = TfLiteIntArrayCreate(1);
    n->temporaries->data[0] = above->scratch;
    TfLiteTensor* scratch = &c->tensors[above->scratch];
    scratch->type = kTfLiteFloat32;
    scratch->allocation_type = kTfLiteArenaRw;
    TF_LITE_ENSURE_OK(c, c->ResizeTensor(c, scratch, TfLiteIntArrayCopy(In(c, n, 0)->dims)));
    Out(c, n, 0)->allocation_type = kTfLiteDynamic;
    return kTfLiteOk;
  };
  r.invoke = [](TfLiteContext* c, TfLiteNode* n) {
    Above* above = static_cast<Above*>(n->user_data);
    const TfLiteTensor* x = In(c, n, 0);
    float* scratch = c->tensors[above->scratch].data.f;
    int count = 0;
    for (size_t i = 0; i < x->bytes / sizeof(float); ++i)
      if (x->data.f[i] > above->limit) scratch[count++] = x->data.f[i];
    TF_LITE_ENSURE_OK(c, c->ResizeTensor(c, Out(c, n, 0), Shape(count)), "no room for %d values", count);
    if (count) std::memcpy(Out(c, n, 0)->data.f, scratch, sizeof(float) * count);
    return kTfLiteOk;
  };
  return &r;
}

// ---- a sum over all runs, in a persistent tensor of TensorBuilder ----
extern "C" TFL_CAPI_EXPORT TfLiteOperator* TotalOperator() {
  TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Total", 1, nullptr);
  TfLiteOperatorSetInit(op, [](TfLiteOpaqueContext* c, const char*, size_t) -> void* {
    TfLiteOpaqueTensorBuilder* builder = TfLiteOpaqueTensorBuilderCreate();
    TfLiteOpaqueTensorBuilderSetAllocationType(TfLiteOpaqueTensorBuilderSetType(builder, kTfLiteFloat32), kTfLiteArenaRwPersistent);
    int* index = static_cast<int*>(std::malloc(sizeof(int)));
    const TfLiteStatus status = TfLiteOpaqueContextAddTensor(c, builder, index);
    TfLiteOpaqueTensorBuilderDelete(builder);
    if (status == kTfLiteOk) return index;
    std::free(index);
    return TfLiteKernelInitFailed();
  });
  TfLiteOperatorSetFree(op, [](TfLiteOpaqueContext*, void* data) { std::free(data); });
  TfLiteOperatorSetPrepare(op, [](TfLiteOpaqueContext* c, TfLiteOpaqueNode* n) {
    const int* index = static_cast<int*>(TfLiteOpaqueNodeGetUserData(n));
    TF_LITE_OPAQUE_ENSURE(c, TfLiteOpaqueNodeSetTemporaries(n, index, 1) == kTfLiteOk);
    const int* listed;
    int count;
    TfLiteOpaqueNodeTemporaries(n, &listed, &count);
    TF_LITE_OPAQUE_ENSURE_EQ(c, count, 1);
    const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(c, n, 0);
    for (TfLiteOpaqueTensor* t : {TfLiteOpaqueContextGetOpaqueTensor(c, *index), TfLiteOpaqueNodeGetOutput(c, n, 0)}) {
      TfLiteIntArray* shape = TfLiteIntArrayCreate(TfLiteOpaqueTensorNumDims(x));
      for (int i = 0; i < shape->size; ++i) shape->data[i] = TfLiteOpaqueTensorDim(x, i);
      if (TfLiteOpaqueContextResizeTensor(c, t, shape) != kTfLiteOk) return kTfLiteError;
    }
    return kTfLiteOk;
  });
  TfLiteOperatorSetInvoke(op, [](TfLiteOpaqueContext* c, TfLiteOpaqueNode* n) {
    const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(c, n, 0);
    TfLiteOpaqueTensor* sum = TfLiteOpaqueContextGetOpaqueTensor(c, *static_cast<int*>(TfLiteOpaqueNodeGetUserData(n)));
    const float* from = static_cast<const float*>(TfLiteOpaqueTensorData(x));
    float* to = static_cast<float*>(TfLiteOpaqueTensorData(sum));
    for (size_t i = 0; i < TfLiteOpaqueTensorByteSize(x) / sizeof(float); ++i) to[i] += from[i];
    return TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueNodeGetOutput(c, n, 0), to, TfLiteOpaqueTensorByteSize(sum));
  });
  return op;
}

// ---- strings in capitals: those with characters, and the number that there were ----
extern "C" TFL_CAPI_EXPORT TfLiteOperator* CapitalsOperator() {
  TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Capitals", 1, nullptr);
  TfLiteOperatorSetPrepare(op, [](TfLiteOpaqueContext* c, TfLiteOpaqueNode* n) {
    TF_LITE_OPAQUE_ENSURE_TYPES_EQ(c, TfLiteOpaqueTensorType(TfLiteOpaqueNodeGetInput(c, n, 0)), kTfLiteString);
    return kTfLiteOk;
  });
  TfLiteOperatorSetInvoke(op, [](TfLiteOpaqueContext* c, TfLiteOpaqueNode* n) {
    const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(c, n, 0);
    const char* texts[64];
    int lengths[64], count = 0;
    for (int i = 0; i < TfLiteOpaqueTensorGetStringCount(x) && count < 64; ++i) {
      const char* text;
      int length;
      if (TfLiteOpaqueTensorGetString(x, i, &text, &length) != kTfLiteOk) return kTfLiteError;
      if (length == 0) continue;
      char* copy = static_cast<char*>(std::malloc(length));
      for (int j = 0; j < length; ++j) copy[j] = std::toupper(static_cast<unsigned char>(text[j]));
      texts[count] = copy;
      lengths[count++] = length;
    }
    const TfLiteStatus status = TfLiteOpaqueTensorWriteStrings(TfLiteOpaqueNodeGetOutput(c, n, 0), texts, count, lengths);
    for (int i = 0; i < count; ++i) std::free(const_cast<char*>(texts[i]));
    return status;
  });
  return op;
}

// ---- what a node is told: its constant, its quantization, name, signature, threads, optional input and options ----
extern "C" TFL_CAPI_EXPORT TfLiteRegistration* Register_TOLD() {
  static TfLiteRegistration r = Struct(
      [](TfLiteContext* c, TfLiteNode* n) {
        TF_LITE_ENSURE(c, In(c, n, 1)->allocation_type == kTfLiteMmapRo && In(c, n, 1)->data.f != nullptr);
        return c->ResizeTensor(c, Out(c, n, 0), Shape(10));
      },
      [](TfLiteContext* c, TfLiteNode* n) {
        const TfLiteTensor* x = In(c, n, 0);
        const TfLiteAffineQuantization* q = static_cast<TfLiteAffineQuantization*>(x->quantization.params);
        float* told = Out(c, n, 0)->data.f;
        told[0] = In(c, n, 1)->data.f[1];
        told[1] = x->quantization.type == kTfLiteAffineQuantization ? q->scale->data[0] : -1;
        told[2] = x->params.zero_point;
        told[3] = std::strlen(x->name);
        told[4] = x->dims_signature->size ? x->dims_signature->data[0] : 7;
        told[5] = c->recommended_num_threads;
        told[6] = n->inputs->data[2];
        told[7] = n->custom_initial_data_size;
        told[8] = n->custom_initial_data ? static_cast<const char*>(n->custom_initial_data)[2] : 0;
        told[9] = n->builtin_data == nullptr;
        return kTfLiteOk;
      });
  return &r;
}

// ---- rounds down to whole numbers, whatever type the model says ----
extern "C" TFL_CAPI_EXPORT TfLiteRegistration* Register_WHOLE() {
  static TfLiteRegistration r = Struct(
      [](TfLiteContext* c, TfLiteNode* n) {
        Out(c, n, 0)->type = kTfLiteInt32;
        return SameShape(c, n);
      },
      [](TfLiteContext* c, TfLiteNode* n) {
        for (size_t i = 0; i < In(c, n, 0)->bytes / sizeof(float); ++i)
          Out(c, n, 0)->data.i32[i] = static_cast<int>(In(c, n, 0)->data.f[i]);
        return kTfLiteOk;
      });
  return &r;
}

// ---- operators in the place of built-in ones, which read their options ----
extern "C" TFL_CAPI_EXPORT TfLiteOperator* LeakyOperator() {
  TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinLeakyRelu, nullptr, 1, nullptr);
  TfLiteOperatorSetInit(op, [](TfLiteOpaqueContext*, const char* data, size_t length) -> void* {
    float* alpha = static_cast<float*>(std::malloc(sizeof(float)));
    *alpha = length == 0 && data ? reinterpret_cast<const TfLiteLeakyReluParams*>(data)->alpha : -1;
    return alpha;
  });
  TfLiteOperatorSetFree(op, [](TfLiteOpaqueContext*, void* data) { std::free(data); });
  TfLiteOperatorSetPrepare(op, [](TfLiteOpaqueContext* c, TfLiteOpaqueNode* n) {
    const auto* options = static_cast<const TfLiteLeakyReluParams*>(TfLiteOpaqueNodeGetBuiltinData(n));
    TF_LITE_OPAQUE_ENSURE(c, options->alpha == *static_cast<float*>(TfLiteOpaqueNodeGetUserData(n)));
    return kTfLiteOk;
  });
  TfLiteOperatorSetInvoke(op, [](TfLiteOpaqueContext* c, TfLiteOpaqueNode* n) {
    const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(c, n, 0);
    const float* from = static_cast<const float*>(TfLiteOpaqueTensorData(x));
    float* to = static_cast<float*>(TfLiteOpaqueTensorData(TfLiteOpaqueNodeGetOutput(c, n, 0)));
    const float alpha = *static_cast<float*>(TfLiteOpaqueNodeGetUserData(n));
    for (size_t i = 0; i < TfLiteOpaqueTensorByteSize(x) / sizeof(float); ++i) to[i] = from[i] > 0 ? from[i] : 1000 * alpha;
    return kTfLiteOk;
  });
  return op;
}
extern "C" TFL_CAPI_EXPORT TfLiteRegistration* Register_POOL() {
  static TfLiteRegistration r = Struct(
      [](TfLiteContext* c, TfLiteNode* n) { return c->ResizeTensor(c, Out(c, n, 0), TfLiteIntArrayCopy(Out(c, n, 0)->dims)); },
      [](TfLiteContext* c, TfLiteNode* n) {
        const auto* o = static_cast<const TfLitePoolParams*>(n->builtin_data);
        const int values[] = {o->padding, o->stride_width, o->stride_height, o->filter_width, o->filter_height, o->activation};
        for (int i = 0; i < 6; ++i) Out(c, n, 0)->data.f[i] = values[i];
        return kTfLiteOk;
      });
  return &r;
}

// ---- a shape that prepare does not know: kTfLiteOutputShapeNotKnown ----
extern "C" TFL_CAPI_EXPORT TfLiteRegistration* Register_UNKNOWN() {
  static TfLiteRegistration r = Struct([](TfLiteContext*, TfLiteNode*) { return kTfLiteOutputShapeNotKnown; },
                                       [](TfLiteContext* c, TfLiteNode* n) {
                                         const int count = static_cast<int>(In(c, n, 0)->data.f[0]);
                                         TF_LITE_ENSURE_OK(c, c->ResizeTensor(c, Out(c, n, 0), Shape(count)));
                                         for (int i = 0; i < count; ++i) Out(c, n, 0)->data.f[i] = i;
                                         return kTfLiteOk;
                                       });
  return &r;
}
