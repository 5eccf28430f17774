/* A library that brings its own runtime and prefers it (linked with -Bsymbolic): its operators are not those of the API here. */
#include <stdlib.h>

#include "tflite/c/c_api_opaque.h"

struct TfLiteOperator {
  const char* name;
  int version;
  void* functions[12];
};

TfLiteOperator* TfLiteOperatorCreate(TfLiteBuiltinOperator code, const char* name, int version, void* data) {
  (void)code, (void)data;
  TfLiteOperator* made = calloc(1, sizeof *made);
  made->name = name;
  made->version = version;
  return made;
}

const TfLiteOperator* OwnOperator(void) { return TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Own", 1, NULL); }
