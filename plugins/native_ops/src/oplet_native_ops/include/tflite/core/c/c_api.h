/* The part of c_api.h that operators and delegates call: the tensors' values, and versions. */
#ifndef OPLET_TFLITE_CORE_C_C_API_H_
#define OPLET_TFLITE_CORE_C_C_API_H_

#include "tflite/builtin_ops.h"
#include "tflite/core/c/c_api_types.h"
#include "tflite/core/c/common.h"
#include "tflite/core/c/operator.h"

#ifdef __cplusplus
extern "C" {
#endif
TFL_CAPI_EXPORT extern const char* TfLiteVersion(void);
TFL_CAPI_EXPORT extern const char* TfLiteExtensionApisVersion(void);
TFL_CAPI_EXPORT extern int TfLiteSchemaVersion(void);
TFL_CAPI_EXPORT extern TfLiteType TfLiteTensorType(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT extern int32_t TfLiteTensorNumDims(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT extern int32_t TfLiteTensorDim(const TfLiteTensor* tensor, int32_t dim_index);
TFL_CAPI_EXPORT extern size_t TfLiteTensorByteSize(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT extern void* TfLiteTensorData(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT extern const char* TfLiteTensorName(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT extern TfLiteQuantizationParams TfLiteTensorQuantizationParams(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteTensorCopyFromBuffer(TfLiteTensor* tensor, const void* input_data, size_t input_data_size);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteTensorCopyToBuffer(const TfLiteTensor* tensor, void* output_data, size_t output_data_size);
#ifdef __cplusplus
}
#endif
#endif
