// A delegate that calls nothing of a runtime, and refuses to be made.
#include <stddef.h>

__attribute__((visibility("default"))) void* tflite_plugin_create_delegate(char** keys, char** values, size_t count,
                                                                           void (*report_error)(const char*)) {
  (void)keys;
  (void)values;
  if (report_error != NULL && count > 0) report_error("no device here");
  return NULL;
}

__attribute__((visibility("default"))) void tflite_plugin_destroy_delegate(void* delegate) { (void)delegate; }
