#include "tflite/builtin_ops.h"
