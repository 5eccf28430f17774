/* SimpleDelegateInterface, as the delegate guide uses it: say node by node what is supported, and make a kernel for each partition.
 *
 * The interface is LiteRT's. What is behind it is all here, so that a library links nothing, and runs in oplet and in LiteRT. */
#ifndef OPLET_TFLITE_DELEGATES_UTILS_SIMPLE_DELEGATE_H_
#define OPLET_TFLITE_DELEGATES_UTILS_SIMPLE_DELEGATE_H_

#include <stdint.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "tflite/builtin_ops.h"
#include "tflite/core/c/common.h"

/* Each library has functions of its own, whatever others of these names are in the program. */
#define OPLET_HIDDEN __attribute__((visibility("hidden")))

namespace tflite {

using TfLiteDelegateUniquePtr = std::unique_ptr<TfLiteDelegate, void (*)(TfLiteDelegate*)>;

/* Runs one partition; made by the delegate, freed when the graph goes or is put back. */
class SimpleDelegateKernelInterface {
 public:
  virtual ~SimpleDelegateKernelInterface() = default;
  /* Looks at the nodes, params->nodes_to_replace; once. */
  virtual TfLiteStatus Init(TfLiteContext* context, const TfLiteDelegateParams* params) = 0;
  /* Whenever shapes may have changed. */
  virtual TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) = 0;
  /* Runs it. Tensors may have other memory each time; what lies between the partition's nodes has none. */
  virtual TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) = 0;
};

class SimpleDelegateInterface {
 public:
  struct Options {
    int max_delegated_partitions = 0; /* the largest ones; 0 for all */
    int min_nodes_per_partition = 0;  /* smaller ones are left alone */
  };
  virtual ~SimpleDelegateInterface() = default;
  virtual bool IsNodeSupportedByDelegate(const TfLiteRegistration* registration, const TfLiteNode* node,
                                         TfLiteContext* context) const = 0;
  /* Before any node is asked about; an error refuses the model. */
  virtual TfLiteStatus Initialize(TfLiteContext* context) = 0;
  virtual const char* Name() const = 0;
  virtual std::unique_ptr<SimpleDelegateKernelInterface> CreateDelegateKernelInterface() = 0;
  virtual Options DelegateOptions() const = 0;

  /* For delegates that keep values in buffers of their own. */
  virtual TfLiteStatus CopyFromBufferHandle(TfLiteContext*, TfLiteBufferHandle, TfLiteTensor*) { return kTfLiteError; }
  virtual TfLiteStatus CopyToBufferHandle(TfLiteContext*, TfLiteBufferHandle, const TfLiteTensor*) { return kTfLiteError; }
  virtual void FreeBufferHandle(TfLiteContext*, TfLiteBufferHandle*) {}
};

class OPLET_HIDDEN TfLiteDelegateFactory {
 public:
  static TfLiteDelegate* CreateSimpleDelegate(std::unique_ptr<SimpleDelegateInterface> simple_delegate,
                                              int64_t flags = kTfLiteDelegateFlagsNone) {
    if (!simple_delegate) return nullptr;
    auto* made = new TfLiteDelegate{};
    made->data_ = simple_delegate.release();
    made->flags = flags;
    made->Prepare = Prepare;
    made->CopyFromBufferHandle = [](TfLiteContext* c, TfLiteDelegate* d, TfLiteBufferHandle handle, TfLiteTensor* tensor) {
      return Of(d)->CopyFromBufferHandle(c, handle, tensor);
    };
    made->CopyToBufferHandle = [](TfLiteContext* c, TfLiteDelegate* d, TfLiteBufferHandle handle, TfLiteTensor* tensor) {
      return Of(d)->CopyToBufferHandle(c, handle, tensor);
    };
    made->FreeBufferHandle = [](TfLiteContext* c, TfLiteDelegate* d, TfLiteBufferHandle* handle) {
      Of(d)->FreeBufferHandle(c, handle);
    };
    return made;
  }

  static void DeleteSimpleDelegate(TfLiteDelegate* delegate) {
    if (!delegate) return;
    delete Of(delegate);
    delete delegate;
  }

  static TfLiteDelegateUniquePtr Create(std::unique_ptr<SimpleDelegateInterface> simple_delegate) {
    return TfLiteDelegateUniquePtr(CreateSimpleDelegate(std::move(simple_delegate)), DeleteSimpleDelegate);
  }

 private:
  using Kernel = SimpleDelegateKernelInterface;

  /* A TfLiteIntArray of the library's own: LiteRT's Python package exports no function that makes one. */
  class Array {
   public:
    explicit Array(const std::vector<int>& values)
        : array_(static_cast<TfLiteIntArray*>(std::malloc(sizeof(TfLiteIntArray) + sizeof(int) * values.size()))) {
      if (!array_) return;
      array_->size = static_cast<int>(values.size());
      std::copy(values.begin(), values.end(), array_->data);
    }
    ~Array() { std::free(array_); }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    const TfLiteIntArray* get() const { return array_; }

   private:
    TfLiteIntArray* array_;
  };

  static SimpleDelegateInterface* Of(const TfLiteDelegate* delegate) {
    return static_cast<SimpleDelegateInterface*>(delegate->data_);
  }

  static TfLiteStatus Prepare(TfLiteContext* context, TfLiteDelegate* delegate) {
    SimpleDelegateInterface* simple = Of(delegate);
    TF_LITE_ENSURE_STATUS(simple->Initialize(context));
    TfLiteIntArray* given = nullptr;
    TF_LITE_ENSURE_STATUS(context->GetExecutionPlan(context, &given));
    const std::vector<int> plan(given->data, given->data + given->size); /* the next question may free it */
    std::vector<int> supported;
    for (int index : plan) {
      TfLiteNode* node = nullptr;
      TfLiteRegistration* registration = nullptr;
      TF_LITE_ENSURE_STATUS(context->GetNodeAndRegistration(context, index, &node, &registration));
      if (simple->IsNodeSupportedByDelegate(registration, node, context)) supported.push_back(index);
    }
    TfLiteDelegateParams* partitions = nullptr;
    int count = 0;
    const Array asked(supported);
    TF_LITE_ENSURE_STATUS(context->PreviewDelegatePartitioning(context, asked.get(), &partitions, &count));
    const Array chosen(Chosen(partitions, count, simple->DelegateOptions()));
    return context->ReplaceNodeSubsetsWithDelegateKernels(context, KernelRegistration(simple), chosen.get(), delegate);
  }

  /* The nodes of the largest partitions, of equal ones the first. */
  static std::vector<int> Chosen(const TfLiteDelegateParams* partitions, int count, const SimpleDelegateInterface::Options& options) {
    std::vector<const TfLiteIntArray*> kept;
    for (int i = 0; i < count; ++i)
      if (partitions[i].nodes_to_replace->size >= options.min_nodes_per_partition) kept.push_back(partitions[i].nodes_to_replace);
    std::stable_sort(kept.begin(), kept.end(), [](const TfLiteIntArray* a, const TfLiteIntArray* b) { return a->size > b->size; });
    const int most = options.max_delegated_partitions;
    if (most > 0 && kept.size() > static_cast<size_t>(most)) kept.resize(static_cast<size_t>(most));
    std::vector<int> nodes;
    for (const TfLiteIntArray* partition : kept) nodes.insert(nodes.end(), partition->data, partition->data + partition->size);
    return nodes;
  }

  static TfLiteRegistration KernelRegistration(SimpleDelegateInterface* simple) {
    TfLiteRegistration made{};
    made.builtin_code = kTfLiteBuiltinDelegate;
    made.custom_name = simple->Name();
    made.version = 1;
    made.init = [](TfLiteContext* context, const char* buffer, size_t) -> void* {
      void* const failed = reinterpret_cast<void*>(static_cast<intptr_t>(-1)); /* TfLiteKernelInitFailed() */
      const auto* params = reinterpret_cast<const TfLiteDelegateParams*>(buffer);
      if (!params) return failed;
      std::unique_ptr<Kernel> kernel = Of(params->delegate)->CreateDelegateKernelInterface();
      if (!kernel || kernel->Init(context, params) != kTfLiteOk) return failed;
      return kernel.release();
    };
    made.free = [](TfLiteContext*, void* kernel) { delete static_cast<Kernel*>(kernel); };
    made.prepare = [](TfLiteContext* context, TfLiteNode* node) -> TfLiteStatus {
      TF_LITE_ENSURE(context, node->user_data != nullptr);
      return static_cast<Kernel*>(node->user_data)->Prepare(context, node);
    };
    made.invoke = [](TfLiteContext* context, TfLiteNode* node) -> TfLiteStatus {
      return static_cast<Kernel*>(node->user_data)->Eval(context, node);
    };
    return made;
  }
};

}  // namespace tflite
#endif
