// The delegate guide's MyDelegate: it claims Conv2D and Mean on float32 and computes them.
//
// Options: min_nodes, max_partitions, flags (a sum of kTfLiteDelegateFlags), fail (a stage at which it fails: create, initialize, init,
// prepare, eval), buffers (1: outputs stay in buffers of its own until somebody asks).
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "math.h"
#include "tflite/builtin_op_data.h"
#include "tflite/builtin_ops.h"
#include "tflite/delegates/external/external_delegate_interface.h"
#include "tflite/delegates/utils/simple_delegate.h"

namespace {
using Settings = std::map<std::string, std::string>;

// What is alive and what was freed, for tests: they read it from the library.
struct Counts {
  int delegates, kernels, inits, frees, handles_freed, copies;
};
}  // namespace
extern "C" {
__attribute__((visibility("default"))) int my_delegate_counts[6] = {0, 0, 0, 0, 0, 0};
}
namespace {
Counts& counts = *reinterpret_cast<Counts*>(my_delegate_counts);

int Number(const Settings& settings, const char* key, int otherwise) {
  const auto found = settings.find(key);
  return found == settings.end() ? otherwise : std::atoi(found->second.c_str());
}
bool FailsAt(const Settings& settings, const char* stage) {
  const auto found = settings.find("fail");
  return found != settings.end() && found->second == stage;
}

using Buffers = std::map<int, std::vector<float>>;  // by handle

class MyDelegateKernel : public tflite::SimpleDelegateKernelInterface {
 public:
  MyDelegateKernel(const Settings& settings, Buffers& buffers) : settings_(settings), buffers_(buffers) { ++counts.kernels; }
  ~MyDelegateKernel() override { --counts.kernels, ++counts.frees; }

  TfLiteStatus Init(TfLiteContext* context, const TfLiteDelegateParams* params) override {
    ++counts.inits;
    TF_LITE_ENSURE_MSG(context, !FailsAt(settings_, "init"), ": it was told to fail in Init");
    for (int i = 0; i < params->nodes_to_replace->size; ++i) {
      TfLiteNode* node = nullptr;
      TfLiteRegistration* registration = nullptr;
      TF_LITE_ENSURE_STATUS(context->GetNodeAndRegistration(context, params->nodes_to_replace->data[i], &node, &registration));
      Step step;
      step.is_conv = registration->builtin_code == kTfLiteBuiltinConv2d;
      step.inputs.assign(node->inputs->data, node->inputs->data + node->inputs->size);
      step.output = node->outputs->data[0];
      const TfLiteTensor& x = context->tensors[step.inputs[0]];
      const TfLiteTensor& axes = context->tensors[step.inputs[1]];
      if (step.is_conv)
        step.conv.params = *static_cast<const TfLiteConvParams*>(node->builtin_data);
      else
        step.mean.Axes(x.dims->size, axes.data.i32, static_cast<int>(axes.bytes / sizeof(int)));
      steps_.push_back(step);
    }
    return kTfLiteOk;
  }

  TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode*) override {
    TF_LITE_ENSURE_MSG(context, !FailsAt(settings_, "prepare"), ": it was told to fail in Prepare");
    return kTfLiteOk;
  }

  TfLiteStatus Eval(TfLiteContext* context, TfLiteNode* node) override {
    TF_LITE_ENSURE_MSG(context, !FailsAt(settings_, "eval"), ": it was told to fail in Eval");
    const bool keeps = Number(settings_, "buffers", 0) == 1;
    for (const Step& step : steps_) {
      TfLiteTensor& x = context->tensors[step.inputs[0]];
      TfLiteTensor& y = context->tensors[step.output];
      float* out = Data(y, step.output);
      if (keeps && IsOutput(node, step.output)) {
        const int handle = 100 + step.output;
        buffers_[handle].assign(y.bytes / sizeof(float), 0);
        out = buffers_[handle].data();
        y.delegate = node->delegate;
        y.buffer_handle = handle;
        y.data_is_stale = true;
      }
      const float* in = x.data_is_stale ? buffers_[x.buffer_handle].data() : Data(x, step.inputs[0]);
      const TfLiteTensor& second = context->tensors[step.inputs[1]];
      if (step.is_conv)
        step.conv.Run(x.dims->data, in, second.dims->data, second.data.f, context->tensors[step.inputs[2]].data.f, y.dims->data, out);
      else
        step.mean.Run(x.dims->data, in, out);
    }
    return kTfLiteOk;
  }

 private:
  struct Step {
    bool is_conv = false;
    std::vector<int> inputs;
    int output = -1;
    ConvStep conv;
    MeanStep mean;
  };
  static bool IsOutput(const TfLiteNode* node, int tensor) {
    for (int i = 0; i < node->outputs->size; ++i)
      if (node->outputs->data[i] == tensor) return true;
    return false;
  }
  // What lies between two nodes of the partition has no memory of the runtime's.
  float* Data(const TfLiteTensor& tensor, int index) {
    if (tensor.data.f) return tensor.data.f;
    own_[index].resize(tensor.bytes / sizeof(float));
    return own_[index].data();
  }
  const Settings& settings_;
  Buffers& buffers_;
  std::vector<Step> steps_;
  std::map<int, std::vector<float>> own_;
};

class MyDelegate : public tflite::SimpleDelegateInterface {
 public:
  explicit MyDelegate(const Settings& settings) : settings_(settings) { ++counts.delegates; }
  ~MyDelegate() override { --counts.delegates; }

  bool IsNodeSupportedByDelegate(const TfLiteRegistration* registration, const TfLiteNode* node,
                                 TfLiteContext* context) const override {
    const int code = registration->builtin_code;
    if ((code != kTfLiteBuiltinConv2d && code != kTfLiteBuiltinMean) || registration->version > 1) return false;
    const auto tensor = [&](const TfLiteIntArray* of, int i) -> const TfLiteTensor& { return context->tensors[of->data[i]]; };
    if (node->inputs->size < 1 || node->outputs->size != 1) return false;
    const TfLiteTensor& x = tensor(node->inputs, 0);
    if (x.type != kTfLiteFloat32 || tensor(node->outputs, 0).type != kTfLiteFloat32) {
      context->ReportError(context, "it works on float32, not on type %d", x.type);
      return false;
    }
    for (int i = 0; i < node->inputs->size; ++i)
      if (node->inputs->data[i] < 0) return false;
    if (code == kTfLiteBuiltinMean) {
      if (node->inputs->size != 2) return false;
      const TfLiteTensor& axes = tensor(node->inputs, 1);
      if (axes.allocation_type != kTfLiteMmapRo || axes.type != kTfLiteInt32 || !x.bytes) return false;
      for (size_t i = 0; i < axes.bytes / sizeof(int); ++i)
        if (axes.data.i32[i] < -x.dims->size || axes.data.i32[i] >= x.dims->size) return false;
      return true;
    }
    if (node->inputs->size != 3) return false;
    const auto* params = static_cast<const TfLiteConvParams*>(node->builtin_data);
    const TfLiteTensor& w = tensor(node->inputs, 1);
    const TfLiteTensor& bias = tensor(node->inputs, 2);
    if (w.type != kTfLiteFloat32 || bias.type != kTfLiteFloat32 || x.dims->size != 4 || w.dims->size != 4) return false;
    return w.dims->data[3] == x.dims->data[3] && bias.dims->size == 1 && bias.dims->data[0] == w.dims->data[0] &&
           params->dilation_width_factor == 1 && params->dilation_height_factor == 1 && params->stride_width >= 1 &&
           params->stride_height >= 1 && params->padding != kTfLitePaddingUnknown && params->activation <= kTfLiteActRelu6;
  }

  TfLiteStatus Initialize(TfLiteContext* context) override {
    TF_LITE_ENSURE_MSG(context, !FailsAt(settings_, "initialize"), ": it was told to fail in Initialize");
    return kTfLiteOk;
  }
  const char* Name() const override { return "MyDelegate"; }
  std::unique_ptr<tflite::SimpleDelegateKernelInterface> CreateDelegateKernelInterface() override {
    return std::make_unique<MyDelegateKernel>(settings_, buffers_);
  }
  Options DelegateOptions() const override {
    Options options;
    options.min_nodes_per_partition = Number(settings_, "min_nodes", 0);
    options.max_delegated_partitions = Number(settings_, "max_partitions", 0);
    return options;
  }

  TfLiteStatus CopyFromBufferHandle(TfLiteContext* context, TfLiteBufferHandle handle, TfLiteTensor* tensor) override {
    TF_LITE_ENSURE_MSG(context, !FailsAt(settings_, "copy"), ": it was told to fail in CopyFromBufferHandle");
    const auto found = buffers_.find(handle);
    if (found == buffers_.end() || found->second.size() * sizeof(float) != tensor->bytes) return kTfLiteError;
    std::memcpy(tensor->data.f, found->second.data(), tensor->bytes);
    ++counts.copies;
    return kTfLiteOk;
  }
  TfLiteStatus CopyToBufferHandle(TfLiteContext*, TfLiteBufferHandle handle, const TfLiteTensor* tensor) override {
    buffers_[handle].assign(tensor->data.f, tensor->data.f + tensor->bytes / sizeof(float));
    return kTfLiteOk;
  }
  void FreeBufferHandle(TfLiteContext*, TfLiteBufferHandle* handle) override {
    buffers_.erase(*handle);
    *handle = kTfLiteNullBufferHandle;
    ++counts.handles_freed;
  }

 private:
  Settings settings_;
  Buffers buffers_;
};
}  // namespace

extern "C" TfLiteDelegate* tflite_plugin_create_delegate(const char* const* keys, const char* const* values, size_t count,
                                                         void (*report_error)(const char*)) {
  static const char* const known[] = {"min_nodes", "max_partitions", "flags", "fail", "buffers"};
  Settings settings;
  for (size_t i = 0; i < count; ++i) {
    bool found = false;
    for (const char* name : known) found = found || !std::strcmp(name, keys[i]);
    if (!found) {
      if (report_error) report_error((std::string("unknown option ") + keys[i]).c_str());
      return nullptr;
    }
    settings[keys[i]] = values[i];
  }
  if (FailsAt(settings, "create")) return nullptr;
  return tflite::TfLiteDelegateFactory::CreateSimpleDelegate(std::make_unique<MyDelegate>(settings), Number(settings, "flags", 0));
}
extern "C" void tflite_plugin_destroy_delegate(TfLiteDelegate* delegate) {
  tflite::TfLiteDelegateFactory::DeleteSimpleDelegate(delegate);
}
