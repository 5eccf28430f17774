/* SimpleOpaqueDelegateInterface: the same as simple_delegate.h, on opaque types alone.
 *
 * The interface is LiteRT's. What is behind it is all here; it calls the functions of c_api_opaque.h, which whoever loads the library
 * must have. */
#ifndef OPLET_TFLITE_DELEGATES_UTILS_SIMPLE_OPAQUE_DELEGATE_H_
#define OPLET_TFLITE_DELEGATES_UTILS_SIMPLE_OPAQUE_DELEGATE_H_

#include <stdint.h>

#include <memory>
#include <utility>
#include <vector>

#include "tflite/builtin_ops.h"
#include "tflite/c/c_api_opaque.h"
#include "tflite/c/c_api_types.h"
#include "tflite/c/common.h"
#include "tflite/core/c/operator.h"

#ifndef OPLET_HIDDEN
#define OPLET_HIDDEN __attribute__((visibility("hidden")))
#endif

namespace tflite {

using TfLiteOpaqueDelegateUniquePtr = std::unique_ptr<TfLiteOpaqueDelegate, void (*)(TfLiteOpaqueDelegate*)>;

/* Runs one partition; made by the delegate, freed when the graph goes or is put back. */
class SimpleOpaqueDelegateKernelInterface {
 public:
  virtual ~SimpleOpaqueDelegateKernelInterface() = default;
  /* Looks at the nodes, params->nodes_to_replace; once. */
  virtual TfLiteStatus Init(TfLiteOpaqueContext* context, const TfLiteOpaqueDelegateParams* params) = 0;
  /* Whenever shapes may have changed. */
  virtual TfLiteStatus Prepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) = 0;
  /* Runs it. Tensors may have other memory each time; what lies between the partition's nodes has none. */
  virtual TfLiteStatus Eval(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) = 0;
};

class SimpleOpaqueDelegateInterface {
 public:
  virtual ~SimpleOpaqueDelegateInterface() = default;
  virtual bool IsNodeSupportedByDelegate(const TfLiteOperator* registration_external, const TfLiteOpaqueNode* node,
                                         TfLiteOpaqueContext* context) const = 0;
  /* Before any node is asked about; an error refuses the model. */
  virtual TfLiteStatus Initialize(TfLiteOpaqueContext* context) = 0;
  virtual const char* Name() const = 0;
  virtual std::unique_ptr<SimpleOpaqueDelegateKernelInterface> CreateDelegateKernelInterface() = 0;

  /* For delegates that keep values in buffers of their own. */
  virtual TfLiteStatus CopyFromBufferHandle(TfLiteOpaqueContext*, TfLiteBufferHandle, TfLiteOpaqueTensor*) { return kTfLiteError; }
  virtual TfLiteStatus CopyToBufferHandle(TfLiteOpaqueContext*, TfLiteBufferHandle, const TfLiteOpaqueTensor*) {
    return kTfLiteError;
  }
  virtual void FreeBufferHandle(TfLiteOpaqueContext*, TfLiteBufferHandle*) {}
};

class OPLET_HIDDEN TfLiteOpaqueDelegateFactory {
 public:
  static TfLiteOpaqueDelegate* CreateSimpleDelegate(std::unique_ptr<SimpleOpaqueDelegateInterface> simple_delegate,
                                                    int64_t flags = kTfLiteDelegateFlagsNone) {
    if (!simple_delegate) return nullptr;
    TfLiteOpaqueDelegateBuilder builder{};
    builder.Prepare = Prepare;
    builder.flags = flags;
    builder.data = simple_delegate.release();
    builder.CopyFromBufferHandle = [](TfLiteOpaqueContext* c, TfLiteOpaqueDelegate*, void* data, TfLiteBufferHandle handle,
                                      TfLiteOpaqueTensor* tensor) { return Of(data)->CopyFromBufferHandle(c, handle, tensor); };
    builder.CopyToBufferHandle = [](TfLiteOpaqueContext* c, TfLiteOpaqueDelegate*, void* data, TfLiteBufferHandle handle,
                                    TfLiteOpaqueTensor* tensor) { return Of(data)->CopyToBufferHandle(c, handle, tensor); };
    builder.FreeBufferHandle = [](TfLiteOpaqueContext* c, TfLiteOpaqueDelegate*, void* data, TfLiteBufferHandle* handle) {
      Of(data)->FreeBufferHandle(c, handle);
    };
    return TfLiteOpaqueDelegateCreate(&builder);
  }

  static void DeleteSimpleDelegate(TfLiteOpaqueDelegate* opaque_delegate) {
    if (!opaque_delegate) return;
    delete Of(TfLiteOpaqueDelegateGetData(opaque_delegate));
    TfLiteOpaqueDelegateDelete(opaque_delegate);
  }

  static TfLiteOpaqueDelegateUniquePtr Create(std::unique_ptr<SimpleOpaqueDelegateInterface> simple_delegate) {
    return TfLiteOpaqueDelegateUniquePtr(CreateSimpleDelegate(std::move(simple_delegate)), DeleteSimpleDelegate);
  }

 private:
  using Kernel = SimpleOpaqueDelegateKernelInterface;

  static SimpleOpaqueDelegateInterface* Of(void* data) { return static_cast<SimpleOpaqueDelegateInterface*>(data); }

  static TfLiteStatus Prepare(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate, void* data) {
    SimpleOpaqueDelegateInterface* simple = Of(data);
    TF_LITE_ENSURE_STATUS(simple->Initialize(context));
    TfLiteIntArray* given = nullptr;
    TF_LITE_ENSURE_STATUS(TfLiteOpaqueContextGetExecutionPlan(context, &given));
    const std::vector<int> plan(given->data, given->data + given->size); /* the next question may free it */
    TfLiteIntArray* supported = TfLiteIntArrayCreate(static_cast<int>(plan.size()));
    if (!supported) return kTfLiteError;
    supported->size = 0;
    for (int index : plan) {
      TfLiteOpaqueNode* node = nullptr;
      TfLiteOperator* op = nullptr;
      const TfLiteStatus status = TfLiteOpaqueContextGetNodeAndRegistration(context, index, &node, &op);
      if (status != kTfLiteOk) return TfLiteIntArrayFree(supported), status;
      if (simple->IsNodeSupportedByDelegate(op, node, context)) supported->data[supported->size++] = index;
    }
    /* The runtime owns the operator from here on. */
    const TfLiteStatus status =
        TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels(context, KernelOperator(simple), supported, delegate);
    TfLiteIntArrayFree(supported);
    return status;
  }

  static TfLiteOperator* KernelOperator(SimpleOpaqueDelegateInterface* simple) {
    TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinDelegate, simple->Name(), 1, nullptr);
    if (!op) return nullptr;
    TfLiteOperatorSetInit(op, [](TfLiteOpaqueContext* context, const char* buffer, size_t) -> void* {
      void* const failed = reinterpret_cast<void*>(static_cast<intptr_t>(-1)); /* TfLiteKernelInitFailed() */
      const auto* params = reinterpret_cast<const TfLiteOpaqueDelegateParams*>(buffer);
      if (!params) return failed;
      std::unique_ptr<Kernel> kernel = Of(params->delegate_data)->CreateDelegateKernelInterface();
      if (!kernel || kernel->Init(context, params) != kTfLiteOk) return failed;
      return kernel.release();
    });
    TfLiteOperatorSetFree(op, [](TfLiteOpaqueContext*, void* kernel) { delete static_cast<Kernel*>(kernel); });
    TfLiteOperatorSetPrepare(op, [](TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) -> TfLiteStatus {
      auto* kernel = static_cast<Kernel*>(TfLiteOpaqueNodeGetUserData(node));
      return kernel ? kernel->Prepare(context, node) : kTfLiteError;
    });
    TfLiteOperatorSetInvoke(op, [](TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) -> TfLiteStatus {
      return static_cast<Kernel*>(TfLiteOpaqueNodeGetUserData(node))->Eval(context, node);
    });
    return op;
  }
};

}  // namespace tflite
#endif
