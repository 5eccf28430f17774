// A delegate that claims nothing and writes down all that it sees, for a comparison of two runtimes.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tflite/builtin_op_data.h"
#include "tflite/builtin_ops.h"
#include "tflite/c/common.h"
#include "tflite/delegates/external/external_delegate_interface.h"

__attribute__((visibility("default"))) char probe_text[1 << 22];
static size_t length;

static void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int written = vsnprintf(probe_text + length, sizeof probe_text - length, format, arguments);
  if (written > 0 && length + (size_t)written < sizeof probe_text) length += (size_t)written;
  va_end(arguments);
}

static void say_array(const char* name, const TfLiteIntArray* array) {
  say(" %s[", name);
  for (int i = 0; array && i < array->size; i++) say(i ? ",%d" : "%d", array->data[i]);
  say("]");
}

static unsigned sum_of(const void* data, size_t bytes) {
  unsigned sum = 2166136261u;
  for (size_t i = 0; i < bytes; i++) sum = (sum ^ ((const unsigned char*)data)[i]) * 16777619u;
  return sum;
}

static void say_tensor(const TfLiteTensor* t) {
  say("%d '%s'", t->type, t->name ? t->name : "");
  say_array("dims", t->dims);
  say(" bytes %zu variable %d constant %d", t->type == kTfLiteString ? 0 : t->bytes, t->is_variable, t->allocation_type == kTfLiteMmapRo);
  say(" scale %g zero %d", t->params.scale, t->params.zero_point);
  if (t->quantization.type == kTfLiteAffineQuantization) {
    const TfLiteAffineQuantization* q = t->quantization.params;
    say(" scales %d dimension %d sum %u", q->scale->size, q->quantized_dimension,
        sum_of(q->scale->data, sizeof(float) * (size_t)q->scale->size));
    say_array("zeros", q->zero_point);
  }
  if (t->allocation_type == kTfLiteMmapRo && t->data.raw) say(" data %u", sum_of(t->data.raw, t->bytes));
  say("\n");
}

static void say_options(int code, const void* data) {
  if (!data) return;
  if (code == kTfLiteBuiltinConv2d) {
    const TfLiteConvParams* p = data;
    say(" conv %d %d %d %d %d %d", p->padding, p->stride_width, p->stride_height, p->activation, p->dilation_width_factor,
        p->dilation_height_factor);
  } else if (code == kTfLiteBuiltinDepthwiseConv2d) {
    const TfLiteDepthwiseConvParams* p = data;
    say(" depthwise %d %d %d %d %d", p->padding, p->stride_width, p->stride_height, p->depth_multiplier, p->activation);
  } else if (code == kTfLiteBuiltinMean || code == kTfLiteBuiltinSum) {
    say(" keep %d", ((const TfLiteReducerParams*)data)->keep_dims);
  } else if (code == kTfLiteBuiltinReshape) {
    const TfLiteReshapeParams* p = data;
    for (int i = 0; i < p->num_dimensions; i++) say(" to %d", p->shape[i]);
  } else if (code == kTfLiteBuiltinSoftmax) {
    say(" beta %g", ((const TfLiteSoftmaxParams*)data)->beta);
  } else if (code == kTfLiteBuiltinFullyConnected) {
    const TfLiteFullyConnectedParams* p = data;
    say(" full %d %d %d %d", p->activation, p->weights_format, p->keep_num_dims, p->asymmetric_quantize_inputs);
  } else if (code == kTfLiteBuiltinStridedSlice) {
    const TfLiteStridedSliceParams* p = data;
    say(" slice %d %d %d %d %d", p->begin_mask, p->end_mask, p->ellipsis_mask, p->new_axis_mask, p->shrink_axis_mask);
  } else if (code == kTfLiteBuiltinConcatenation) {
    say(" axis %d %d", ((const TfLiteConcatenationParams*)data)->axis, ((const TfLiteConcatenationParams*)data)->activation);
  } else if (code == kTfLiteBuiltinMaxPool2d || code == kTfLiteBuiltinAveragePool2d) {
    const TfLitePoolParams* p = data;
    say(" pool %d %d %d %d %d %d", p->padding, p->stride_width, p->stride_height, p->filter_width, p->filter_height, p->activation);
  } else if (code == kTfLiteBuiltinCast) {
    say(" cast %d %d", ((const TfLiteCastParams*)data)->in_data_type, ((const TfLiteCastParams*)data)->out_data_type);
  } else if (code == kTfLiteBuiltinGather) {
    say(" gather %d %d", ((const TfLiteGatherParams*)data)->axis, ((const TfLiteGatherParams*)data)->batch_dims);
  }
}

static TfLiteStatus prepare(TfLiteContext* context, TfLiteDelegate* delegate) {
  TfLiteIntArray* plan = NULL;
  TfLiteDelegateParams* partitions = NULL;
  int count = 0;
  (void)delegate;
  TF_LITE_ENSURE_STATUS(context->GetExecutionPlan(context, &plan));
  say_array("plan", plan);
  say("\n");
  TfLiteIntArray* wanted = malloc(sizeof *wanted + sizeof(int) * (size_t)plan->size);
  TfLiteIntArray* nodes = malloc(sizeof *nodes + sizeof(int) * (size_t)plan->size);
  memcpy(nodes, plan, sizeof *nodes + sizeof(int) * (size_t)plan->size);
  wanted->size = 0;
  for (int i = 0; i < nodes->size; i++) {
    TfLiteNode* node = NULL;
    TfLiteRegistration* registration = NULL;
    TF_LITE_ENSURE_STATUS(context->GetNodeAndRegistration(context, nodes->data[i], &node, &registration));
    say("node %d code %d version %d '%s'", nodes->data[i], registration->builtin_code, registration->version,
        registration->custom_name && registration->builtin_code == kTfLiteBuiltinCustom ? registration->custom_name : "");
    say_array("in", node->inputs);
    say_array("out", node->outputs);
    say_options(registration->builtin_code, node->builtin_data);
    if (node->custom_initial_data_size) say(" custom %u", sum_of(node->custom_initial_data, (size_t)node->custom_initial_data_size));
    say("\n");
    for (int k = 0; k < node->inputs->size; k++)
      if (node->inputs->data[k] >= 0) say_tensor(&context->tensors[node->inputs->data[k]]);
    if (registration->builtin_code % 3) wanted->data[wanted->size++] = nodes->data[i];
  }
  TfLiteNode* node = NULL;
  TfLiteRegistration* registration = NULL;
  say("far %d\n", context->GetNodeAndRegistration(context, 100000, &node, &registration));
  TF_LITE_ENSURE_STATUS(context->PreviewDelegatePartitioning(context, wanted, &partitions, &count));
  for (int i = 0; i < count; i++) {
    say("partition");
    say_array("nodes", partitions[i].nodes_to_replace);
    say_array("in", partitions[i].input_tensors);
    say_array("out", partitions[i].output_tensors);
    say("\n");
  }
  const char* data = NULL;
  size_t bytes = 0;
  const TfLiteStatus found = context->GetModelMetadata(context, "min_runtime_version", &data, &bytes);
  say("metadata %d %zu\n", found, found == kTfLiteOk ? bytes : 0);
  free(wanted), free(nodes);
  return kTfLiteOk;
}

TfLiteDelegate* tflite_plugin_create_delegate(const char* const* keys, const char* const* values, size_t count,
                                              void (*report_error)(const char*)) {
  (void)keys, (void)values, (void)count, (void)report_error;
  TfLiteDelegate* made = calloc(1, sizeof *made);
  length = 0;
  probe_text[0] = 0;
  if (made) made->Prepare = prepare;
  return made;
}
void tflite_plugin_destroy_delegate(TfLiteDelegate* delegate) { free(delegate); }
