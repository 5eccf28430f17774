#include "tflite/core/c/c_api_opaque.h"
