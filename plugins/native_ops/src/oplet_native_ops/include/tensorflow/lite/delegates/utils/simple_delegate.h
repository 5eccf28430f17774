#include "tflite/delegates/utils/simple_delegate.h"
