/* Stands for another runtime with functions of the same names, which is of no use to anybody. */
#include "tflite/c/c_api_opaque.h"

TfLiteOperator* TfLiteOperatorCreate(TfLiteBuiltinOperator code, const char* name, int version, void* data) {
  (void)code, (void)name, (void)version, (void)data;
  return NULL;
}

TfLiteIntArray* TfLiteIntArrayCreate(int size) {
  (void)size;
  return NULL;
}
