#include "tflite/core/c/builtin_op_data.h"
