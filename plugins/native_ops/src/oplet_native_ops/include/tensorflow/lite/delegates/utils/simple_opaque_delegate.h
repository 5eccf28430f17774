#include "tflite/delegates/utils/simple_opaque_delegate.h"
