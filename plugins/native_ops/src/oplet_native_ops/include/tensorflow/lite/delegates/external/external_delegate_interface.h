#include "tflite/delegates/external/external_delegate_interface.h"
