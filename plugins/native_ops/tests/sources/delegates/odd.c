// Delegates that do what few do; the option "what" says which: "dynamic", "temporaries", "rewires", "acquires", "metadata".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tflite/builtin_ops.h"
#include "tflite/c/common.h"
#include "tflite/delegates/external/external_delegate_interface.h"

typedef struct {
  int input, output, scratch;
  TfLiteContext* body; // for "acquires": another subgraph, which the kernel looks at as it runs
} Step;

static char what[64];
static int is(const char* name) { return !strcmp(what, name); }

static void* init(TfLiteContext* context, const char* buffer, size_t length) {
  const TfLiteDelegateParams* params = (const TfLiteDelegateParams*)buffer;
  TfLiteNode* node = NULL;
  TfLiteRegistration* registration = NULL;
  if (length != sizeof *params || params->nodes_to_replace->size != 1) return (void*)-1;
  if (context->GetNodeAndRegistration(context, params->nodes_to_replace->data[0], &node, &registration) != kTfLiteOk) return (void*)-1;
  Step* step = malloc(sizeof *step);
  step->input = node->inputs->data[0];
  step->output = node->outputs->data[0];
  step->scratch = -1;
  step->body = NULL;
  if (is("acquires")) {
    if (context->AcquireSubgraphContext(context, 1, &step->body) != kTfLiteOk) return free(step), (void*)-1;
    if (context->ReleaseSubgraphContext(context, 1) != kTfLiteOk) return free(step), (void*)-1;
  }
  if (is("temporaries") && context->AddTensors(context, 1, &step->scratch) != kTfLiteOk) return free(step), (void*)-1;
  return step;
}

static void release(TfLiteContext* context, void* step) { (void)context, free(step); }

static TfLiteIntArray* length_of(int count) {
  TfLiteIntArray* made = malloc(sizeof *made + sizeof(int));
  made->size = 1;
  made->data[0] = count;
  return made;
}

static TfLiteStatus prepare_kernel(TfLiteContext* context, TfLiteNode* node) {
  Step* step = node->user_data;
  TfLiteTensor* y = &context->tensors[step->output];
  if (node->builtin_data == NULL || node->delegate == NULL) return kTfLiteError;
  if (is("dynamic")) {
    y->allocation_type = kTfLiteDynamic;
    y->data.raw = NULL;
    return kTfLiteOk;
  }
  if (is("temporaries")) {
    TfLiteTensor* scratch = &context->tensors[step->scratch];
    scratch->type = kTfLiteFloat32;
    scratch->allocation_type = kTfLiteArenaRw;
    free(node->temporaries);
    node->temporaries = length_of(step->scratch);
    TF_LITE_ENSURE_STATUS(context->ResizeTensor(context, scratch, length_of(context->tensors[step->input].dims->data[0])));
  }
  return context->ResizeTensor(context, y, length_of(context->tensors[step->input].dims->data[0]));
}

// y has what is above zero in x, or with other options -x.
static TfLiteStatus run(TfLiteContext* context, TfLiteNode* node) {
  const Step* step = node->user_data;
  const TfLiteTensor* x = &context->tensors[step->input];
  TfLiteTensor* y = &context->tensors[step->output];
  const int count = (int)(x->bytes / sizeof(float));
  if (step->body) {
    const TfLiteTensor* constant = &step->body->tensors[1];
    for (int i = 0; i < count; i++) y->data.f[i] = x->data.f[i] + constant->data.f[0];
    return kTfLiteOk;
  }
  if (is("dynamic")) {
    int above = 0;
    for (int i = 0; i < count; i++) above += x->data.f[i] > 0;
    TF_LITE_ENSURE_STATUS(context->ResizeTensor(context, y, length_of(above)));
    for (int i = 0, at = 0; i < count; i++)
      if (x->data.f[i] > 0) y->data.f[at++] = x->data.f[i] - 1;
    return kTfLiteOk;
  }
  float* out = is("temporaries") ? context->tensors[step->scratch].data.f : y->data.f;
  for (int i = 0; i < count; i++) out[i] = -x->data.f[i];
  if (out != y->data.f) memcpy(y->data.f, out, y->bytes);
  return kTfLiteOk;
}

static TfLiteStatus prepare(TfLiteContext* context, TfLiteDelegate* delegate) {
  struct { int size; int data[8]; } nodes = {0, {0}};
  TfLiteIntArray* plan = NULL;
  TfLiteRegistration kernel;
  memset(&kernel, 0, sizeof kernel);
  kernel.init = init, kernel.free = release, kernel.prepare = prepare_kernel, kernel.invoke = run;
  TF_LITE_ENSURE_STATUS(context->GetExecutionPlan(context, &plan));
  for (int i = 0; i < plan->size && i < 8; i++) {
    TfLiteNode* node = NULL;
    TfLiteRegistration* registration = NULL;
    TF_LITE_ENSURE_STATUS(context->GetNodeAndRegistration(context, plan->data[i], &node, &registration));
    if (is("rewires") && i == 1) node->inputs->data[0] = 0;
    const int wanted = is("dynamic")   ? registration->custom_name && !strcmp(registration->custom_name, "Positive")
                       : is("rewires")  ? i == 1
                       : is("acquires") ? i == 0
                                        : is("temporaries") && registration->builtin_code == kTfLiteBuiltinNeg;
    if (!wanted) continue;
    nodes.size = 1; // each by itself
    nodes.data[0] = plan->data[i];
    TF_LITE_ENSURE_STATUS(
        context->ReplaceNodeSubsetsWithDelegateKernels(context, kernel, (const TfLiteIntArray*)&nodes, delegate));
    TF_LITE_ENSURE_STATUS(context->GetExecutionPlan(context, &plan));
  }
  if (is("metadata")) {
    const char* data = NULL;
    size_t bytes = 0;
    TF_LITE_ENSURE_STATUS(context->GetModelMetadata(context, "note", &data, &bytes));
    TF_LITE_ENSURE_EQ(context, bytes, 5);
    TF_LITE_ENSURE(context, !memcmp(data, "hello", 5));
    TF_LITE_ENSURE(context, context->GetModelMetadata(context, "nothing", &data, &bytes) != kTfLiteOk);
  }
  if (is("acquires")) {
    TfLiteContext* body = NULL;
    TF_LITE_ENSURE_STATUS(context->AcquireSubgraphContext(context, 1, &body));
    TF_LITE_ENSURE_STATUS(body->GetExecutionPlan(body, &plan));
    TF_LITE_ENSURE_EQ(context, plan->size, 1);
    TfLiteNode* node = NULL;
    TfLiteRegistration* registration = NULL;
    TF_LITE_ENSURE_STATUS(body->GetNodeAndRegistration(body, plan->data[0], &node, &registration));
    TF_LITE_ENSURE_EQ(context, registration->builtin_code, kTfLiteBuiltinAdd);
    TF_LITE_ENSURE_EQ(context, body->tensors[node->inputs->data[0]].type, kTfLiteFloat32);
    TF_LITE_ENSURE_STATUS(body->AcquireSubgraphContext(body, 0, &body));
    TF_LITE_ENSURE_STATUS(context->ReleaseSubgraphContext(context, 1));
  }
  return kTfLiteOk;
}

TfLiteDelegate* tflite_plugin_create_delegate(const char* const* keys, const char* const* values, size_t count,
                                              void (*report_error)(const char*)) {
  TfLiteDelegate* made = calloc(1, sizeof *made);
  (void)report_error;
  what[0] = 0;
  if (!made) return NULL;
  for (size_t i = 0; i < count; i++) {
    if (!strcmp(keys[i], "what")) snprintf(what, sizeof what, "%s", values[i]);
    if (!strcmp(keys[i], "flags")) made->flags = atoll(values[i]);
  }
  made->Prepare = prepare;
  return made;
}
void tflite_plugin_destroy_delegate(TfLiteDelegate* delegate) { free(delegate); }
