// The delegate guide's MyDelegate on opaque types: it claims Conv2D and Mean on float32 and computes them.
//
// Options: flags (a sum of kTfLiteDelegateFlags), fail (a stage at which it fails: create, initialize, init, prepare, eval).
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
#include "tflite/delegates/utils/simple_opaque_delegate.h"

extern "C" {
// Delegates and kernels that are alive, inits, frees: tests read them from the library.
__attribute__((visibility("default"))) int my_delegate_counts[6] = {0, 0, 0, 0, 0, 0};
}
namespace {
using Settings = std::map<std::string, std::string>;
bool Is(const Settings& settings, const char* key, const char* value) {
  const auto found = settings.find(key);
  return found != settings.end() && found->second == value;
}

std::vector<int> Shape(const TfLiteOpaqueTensor* tensor) {
  std::vector<int> shape(TfLiteOpaqueTensorNumDims(tensor));
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = TfLiteOpaqueTensorDim(tensor, static_cast<int>(i));
  return shape;
}
const float* Floats(const TfLiteOpaqueTensor* tensor) { return static_cast<const float*>(TfLiteOpaqueTensorData(tensor)); }

class MyKernel : public tflite::SimpleOpaqueDelegateKernelInterface {
 public:
  explicit MyKernel(const Settings& settings) : settings_(settings) { ++my_delegate_counts[1]; }
  ~MyKernel() override { --my_delegate_counts[1], ++my_delegate_counts[3]; }

  TfLiteStatus Init(TfLiteOpaqueContext* context, const TfLiteOpaqueDelegateParams* params) override {
    ++my_delegate_counts[2];
    TF_LITE_OPAQUE_ENSURE_MSG(context, !Is(settings_, "fail", "init"), ": it was told to fail in Init");
    for (int i = 0; i < params->nodes_to_replace->size; ++i) {
      TfLiteOpaqueNode* node = nullptr;
      TfLiteOperator* op = nullptr;
      TF_LITE_ENSURE_STATUS(TfLiteOpaqueContextGetNodeAndRegistration(context, params->nodes_to_replace->data[i], &node, &op));
      Step step;
      step.is_conv = TfLiteOperatorGetBuiltInCode(op) == kTfLiteBuiltinConv2d;
      for (int k = 0; k < TfLiteOpaqueNodeNumberOfInputs(node); ++k)
        step.inputs.push_back(TfLiteOpaqueNodeGetInputTensorIndex(node, k));
      step.output = TfLiteOpaqueNodeGetOutputTensorIndex(node, 0);
      const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(context, node, 0);
      const TfLiteOpaqueTensor* second = TfLiteOpaqueNodeGetInput(context, node, 1);
      if (step.is_conv)
        step.conv.params = *static_cast<const TfLiteConvParams*>(TfLiteOpaqueNodeGetBuiltinData(node));
      else
        step.mean.Axes(TfLiteOpaqueTensorNumDims(x), static_cast<const int*>(TfLiteOpaqueTensorData(second)),
                       static_cast<int>(TfLiteOpaqueTensorByteSize(second) / sizeof(int)));
      steps_.push_back(step);
    }
    return kTfLiteOk;
  }
  TfLiteStatus Prepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode*) override {
    TF_LITE_OPAQUE_ENSURE_MSG(context, !Is(settings_, "fail", "prepare"), ": it was told to fail in Prepare");
    return kTfLiteOk;
  }
  TfLiteStatus Eval(TfLiteOpaqueContext* context, TfLiteOpaqueNode*) override {
    TF_LITE_OPAQUE_ENSURE_MSG(context, !Is(settings_, "fail", "eval"), ": it was told to fail in Eval");
    for (const Step& step : steps_) {
      const auto tensor = [&](int index) { return TfLiteOpaqueContextGetOpaqueTensor(context, index); };
      const TfLiteOpaqueTensor* x = tensor(step.inputs[0]);
      const TfLiteOpaqueTensor* second = tensor(step.inputs[1]);
      const std::vector<int> xd = Shape(x), yd = Shape(tensor(step.output));
      const float* in = Data(x, step.inputs[0]);
      float* out = Data(tensor(step.output), step.output);
      if (step.is_conv)
        step.conv.Run(xd.data(), in, Shape(second).data(), Floats(second), Floats(tensor(step.inputs[2])), yd.data(), out);
      else
        step.mean.Run(xd.data(), in, out);
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
  float* Data(const TfLiteOpaqueTensor* tensor, int index) {
    if (void* data = TfLiteOpaqueTensorData(tensor)) return static_cast<float*>(data);
    own_[index].resize(TfLiteOpaqueTensorByteSize(tensor) / sizeof(float));
    return own_[index].data();
  }
  const Settings& settings_;
  std::vector<Step> steps_;
  std::map<int, std::vector<float>> own_;
};

class MyDelegate : public tflite::SimpleOpaqueDelegateInterface {
 public:
  explicit MyDelegate(const Settings& settings) : settings_(settings) { ++my_delegate_counts[0]; }
  ~MyDelegate() override { --my_delegate_counts[0]; }

  bool IsNodeSupportedByDelegate(const TfLiteOperator* op, const TfLiteOpaqueNode* node, TfLiteOpaqueContext* context) const override {
    const int code = TfLiteOperatorGetBuiltInCode(op), inputs = TfLiteOpaqueNodeNumberOfInputs(node);
    if ((code != kTfLiteBuiltinConv2d && code != kTfLiteBuiltinMean) || TfLiteOperatorGetVersion(op) > 1) return false;
    if (inputs != (code == kTfLiteBuiltinMean ? 2 : 3) || TfLiteOpaqueNodeNumberOfOutputs(node) != 1) return false;
    for (int i = 0; i < inputs; ++i)
      if (!TfLiteOpaqueNodeGetInput(context, node, i)) return false;
    const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(context, node, 0);
    const TfLiteOpaqueTensor* second = TfLiteOpaqueNodeGetInput(context, node, 1);
    const TfLiteOpaqueTensor* y = TfLiteOpaqueNodeGetOutput(const_cast<TfLiteOpaqueContext*>(context), node, 0);
    if (TfLiteOpaqueTensorType(x) != kTfLiteFloat32 || TfLiteOpaqueTensorType(y) != kTfLiteFloat32) return false;
    const std::vector<int> xd = Shape(x), wd = Shape(second);
    if (code == kTfLiteBuiltinMean) {
      const int* axes = static_cast<const int*>(TfLiteOpaqueTensorData(second));
      if (TfLiteOpaqueTensorGetAllocationType(second) != kTfLiteMmapRo || !TfLiteOpaqueTensorByteSize(x)) return false;
      for (size_t i = 0; i < TfLiteOpaqueTensorByteSize(second) / sizeof(int); ++i)
        if (axes[i] < -static_cast<int>(xd.size()) || axes[i] >= static_cast<int>(xd.size())) return false;
      return true;
    }
    const TfLiteOpaqueTensor* bias = TfLiteOpaqueNodeGetInput(context, node, 2);
    const auto* params = static_cast<const TfLiteConvParams*>(TfLiteOpaqueNodeGetBuiltinData(node));
    return TfLiteOpaqueTensorType(second) == kTfLiteFloat32 && TfLiteOpaqueTensorType(bias) == kTfLiteFloat32 && xd.size() == 4 &&
           wd.size() == 4 && wd[3] == xd[3] && Shape(bias) == std::vector<int>{wd[0]} && params->dilation_width_factor == 1 &&
           params->dilation_height_factor == 1 && params->stride_width >= 1 && params->stride_height >= 1 &&
           params->padding != kTfLitePaddingUnknown && params->activation <= kTfLiteActRelu6;
  }
  TfLiteStatus Initialize(TfLiteOpaqueContext* context) override {
    TF_LITE_OPAQUE_ENSURE_MSG(context, !Is(settings_, "fail", "initialize"), ": it was told to fail in Initialize");
    return kTfLiteOk;
  }
  const char* Name() const override { return "MyOpaqueDelegate"; }
  std::unique_ptr<tflite::SimpleOpaqueDelegateKernelInterface> CreateDelegateKernelInterface() override {
    return std::make_unique<MyKernel>(settings_);
  }
  TfLiteStatus CopyFromBufferHandle(TfLiteOpaqueContext*, TfLiteBufferHandle handle, TfLiteOpaqueTensor* tensor) override {
    // Its one buffer, which applications name 7, holds sevens.
    if (handle != 7) return kTfLiteError;
    const std::vector<float> sevens(TfLiteOpaqueTensorByteSize(tensor) / sizeof(float), 7.0f);
    return TfLiteOpaqueTensorCopyFromBuffer(tensor, sevens.data(), TfLiteOpaqueTensorByteSize(tensor));
  }
  void FreeBufferHandle(TfLiteOpaqueContext*, TfLiteBufferHandle* handle) override {
    ++my_delegate_counts[4];
    *handle = kTfLiteNullBufferHandle;
  }

 private:
  Settings settings_;
};
}  // namespace

extern "C" TfLiteDelegate* tflite_plugin_create_delegate(const char* const* keys, const char* const* values, size_t count,
                                                         void (*report_error)(const char*)) {
  Settings settings;
  for (size_t i = 0; i < count; ++i) {
    if (std::strcmp(keys[i], "flags") && std::strcmp(keys[i], "fail")) {
      if (report_error) report_error((std::string("unknown option ") + keys[i]).c_str());
      return nullptr;
    }
    settings[keys[i]] = values[i];
  }
  if (Is(settings, "fail", "create")) return nullptr;
  const auto flags = settings.find("flags");
  return tflite::TfLiteOpaqueDelegateFactory::CreateSimpleDelegate(
      std::make_unique<MyDelegate>(settings), flags == settings.end() ? kTfLiteDelegateFlagsNone : std::atoi(flags->second.c_str()));
}
extern "C" void tflite_plugin_destroy_delegate(TfLiteDelegate* delegate) {
  tflite::TfLiteOpaqueDelegateFactory::DeleteSimpleDelegate(delegate);
}
