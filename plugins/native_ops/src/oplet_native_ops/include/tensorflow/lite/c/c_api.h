#include "tflite/core/c/c_api.h"
