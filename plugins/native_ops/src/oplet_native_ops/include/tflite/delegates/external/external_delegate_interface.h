/* What a library of a delegate exports: the two functions that load_delegate looks for. */
#ifndef OPLET_TFLITE_DELEGATES_EXTERNAL_EXTERNAL_DELEGATE_INTERFACE_H_
#define OPLET_TFLITE_DELEGATES_EXTERNAL_EXTERNAL_DELEGATE_INTERFACE_H_

#include <stddef.h>

#include "tflite/core/c/common.h"

#ifdef __cplusplus
extern "C" {
#endif
TFL_CAPI_EXPORT extern TfLiteDelegate* tflite_plugin_create_delegate(const char* const* options_keys, const char* const* options_values,
                                                                     size_t num_options, void (*report_error)(const char*));
TFL_CAPI_EXPORT extern void tflite_plugin_destroy_delegate(TfLiteDelegate* delegate);
#ifdef __cplusplus
}
#endif
#endif
