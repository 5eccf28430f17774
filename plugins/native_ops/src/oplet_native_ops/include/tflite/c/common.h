#include "tflite/core/c/common.h"
