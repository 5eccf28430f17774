// Delegates that are none: what the option "lie" says.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tflite/c/c_api_opaque.h"
#include "tflite/c/common.h"
#include "tflite/delegates/external/external_delegate_interface.h"

static char lie[64];
static TfLiteDelegate other;
static int data[16];

static TfLiteStatus run(TfLiteContext* context, TfLiteNode* node) { return (void)context, (void)node, kTfLiteOk; }

static int is(const char* name) { return !strcmp(lie, name); }

static TfLiteStatus prepare(TfLiteContext* context, TfLiteDelegate* delegate) {
  struct { int size; int data[4]; } nodes = {1, {0}};
  const TfLiteIntArray* array = (const TfLiteIntArray*)&nodes;
  TfLiteRegistration registration;
  memset(&registration, 0, sizeof registration);
  registration.invoke = run;
  if (is("status")) return kTfLiteDelegateError;
  if (is("far")) nodes.data[0] = 1000;
  if (is("negative")) nodes.data[0] = -5;
  if (is("size")) nodes.size = -3;
  if (is("null-nodes")) array = NULL;
  if (is("null-invoke")) registration.invoke = NULL;
  if (is("data-init")) memcpy(&registration.init, &(void*){data}, sizeof(void*));
  if (is("other")) delegate = &other;
  if (is("preview")) {
    TfLiteDelegateParams* params = NULL;
    int count = 0;
    nodes.data[0] = 1000;
    return context->PreviewDelegatePartitioning(context, array, &params, &count);
  }
  if (is("acquire")) {
    TfLiteContext* acquired = NULL;
    return context->AcquireSubgraphContext(context, 9, &acquired);
  }
  if (is("inputs")) {
    TfLiteNode* node = NULL;
    TfLiteRegistration* of = NULL;
    context->GetNodeAndRegistration(context, 0, &node, &of);
    node->inputs->data[0] = 12345;
  }
  if (is("asks-far")) {
    TfLiteNode* node = NULL;
    TfLiteRegistration* of = NULL;
    return context->GetNodeAndRegistration(context, 1000, &node, &of);
  }
  const TfLiteStatus status = context->ReplaceNodeSubsetsWithDelegateKernels(context, registration, array, delegate);
  return is("shrugs") ? kTfLiteOk : status;
}

static TfLiteStatus opaque_prepare(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate, void* own) {
  struct { int size; int data[4]; } nodes = {1, {0}};
  TfLiteOperator* op = is("opaque-null") ? NULL : (TfLiteOperator*)data;
  (void)own;
  return TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels(context, op, (const TfLiteIntArray*)&nodes, delegate);
}

TfLiteDelegate* tflite_plugin_create_delegate(const char* const* keys, const char* const* values, size_t count,
                                              void (*report_error)(const char*)) {
  static TfLiteDelegate made;
  static TfLiteOpaqueDelegateBuilder builder;
  memset(&made, 0, sizeof made);
  memset(&builder, 0, sizeof builder);
  snprintf(lie, sizeof lie, "%s", count ? values[0] : "");
  (void)keys;
  made.Prepare = prepare;
  if (is("null")) return NULL;
  if (is("reason")) return report_error("there is no such device"), report_error("try another"), NULL;
  if (is("nowhere")) return (TfLiteDelegate*)16;
  if (is("no-prepare")) made.Prepare = NULL;
  if (is("data-prepare")) memcpy(&made.Prepare, &(void*){data}, sizeof(void*));
  if (!strncmp(lie, "opaque", 6)) {
    made.Prepare = NULL;
    made.opaque_delegate_builder = is("opaque-nowhere") ? (TfLiteOpaqueDelegateBuilder*)16 : &builder;
    builder.Prepare = is("opaque-no-prepare") ? NULL : opaque_prepare;
  }
  return &made;
}
void tflite_plugin_destroy_delegate(TfLiteDelegate* delegate) { (void)delegate; }
