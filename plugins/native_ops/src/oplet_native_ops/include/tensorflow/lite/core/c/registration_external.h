#include "tflite/core/c/operator.h"
