#include "tflite/core/c/c_api_types.h"
