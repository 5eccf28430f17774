/* TfLiteOperator, under its present name and as TfLiteRegistrationExternal, with which TensorFlow 2.10 to 2.15 had it. */
#ifndef OPLET_TFLITE_CORE_C_OPERATOR_H_
#define OPLET_TFLITE_CORE_C_OPERATOR_H_

#include <stdint.h>
#include <stdlib.h>

#include "tflite/builtin_ops.h"
#include "tflite/core/c/c_api_types.h"
#include "tflite/core/c/common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void* (*OpletTfLiteInit)(TfLiteOpaqueContext* context, const char* buffer, size_t length);
typedef void (*OpletTfLiteFree)(TfLiteOpaqueContext* context, void* data);
typedef TfLiteStatus (*OpletTfLiteStep)(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node);
typedef struct TfLiteAsyncKernel* (*OpletTfLiteAsync)(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node);
typedef void* (*OpletTfLiteInitWithData)(void* user_data, TfLiteOpaqueContext* context, const char* buffer, size_t length);
typedef void (*OpletTfLiteFreeWithData)(void* user_data, TfLiteOpaqueContext* context, void* data);
typedef TfLiteStatus (*OpletTfLiteStepWithData)(void* user_data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node);
typedef struct TfLiteAsyncKernel* (*OpletTfLiteAsyncWithData)(void* user_data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node);

TFL_CAPI_EXPORT extern TfLiteOperator* TfLiteOperatorCreate(TfLiteBuiltinOperator builtin_code, const char* custom_name, int version,
                                                            void* user_data);
TFL_CAPI_EXPORT extern TfLiteOperator* TfLiteOperatorCreateWithData(TfLiteBuiltinOperator builtin_code, const char* custom_name,
                                                                    int version, void* user_data);
TFL_CAPI_EXPORT extern void TfLiteOperatorDelete(TfLiteOperator* registration);
TFL_CAPI_EXPORT extern TfLiteBuiltinOperator TfLiteOperatorGetBuiltInCode(const TfLiteOperator* registration);
TFL_CAPI_EXPORT extern const char* TfLiteOperatorGetCustomName(const TfLiteOperator* registration);
TFL_CAPI_EXPORT extern int TfLiteOperatorGetVersion(const TfLiteOperator* registration);
TFL_CAPI_EXPORT extern void* TfLiteOperatorGetUserData(const TfLiteOperator* registration);
TFL_CAPI_EXPORT extern void TfLiteOperatorSetInit(TfLiteOperator* registration, OpletTfLiteInit init);
TFL_CAPI_EXPORT extern void TfLiteOperatorSetFree(TfLiteOperator* registration, OpletTfLiteFree free);
TFL_CAPI_EXPORT extern void TfLiteOperatorSetPrepare(TfLiteOperator* registration, OpletTfLiteStep prepare);
TFL_CAPI_EXPORT extern void TfLiteOperatorSetInvoke(TfLiteOperator* registration, OpletTfLiteStep invoke);
TFL_CAPI_EXPORT extern void TfLiteOperatorSetAsyncKernel(TfLiteOperator* registration, OpletTfLiteAsync async_kernel);
/* What these set comes first; `user_data` is that of the operator. */
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteOperatorSetInitWithData(TfLiteOperator* registration, OpletTfLiteInitWithData init);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteOperatorSetFreeWithData(TfLiteOperator* registration, OpletTfLiteFreeWithData free);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteOperatorSetPrepareWithData(TfLiteOperator* registration, OpletTfLiteStepWithData prepare);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteOperatorSetInvokeWithData(TfLiteOperator* registration, OpletTfLiteStepWithData invoke);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteOperatorSetAsyncKernelWithData(TfLiteOperator* registration,
                                                                         OpletTfLiteAsyncWithData async_kernel);
TFL_CAPI_EXPORT extern void TfLiteOperatorSetInplaceOperator(TfLiteOperator* registration, uint64_t inplace_operator);

TFL_CAPI_EXPORT extern TfLiteRegistrationExternal* TfLiteRegistrationExternalCreate(TfLiteBuiltinOperator builtin_code,
                                                                                    const char* custom_name, int version);
TFL_CAPI_EXPORT extern void TfLiteRegistrationExternalDelete(TfLiteRegistrationExternal* registration);
TFL_CAPI_EXPORT extern TfLiteBuiltinOperator TfLiteRegistrationExternalGetBuiltInCode(const TfLiteRegistrationExternal* registration);
TFL_CAPI_EXPORT extern const char* TfLiteRegistrationExternalGetCustomName(const TfLiteRegistrationExternal* registration);
TFL_CAPI_EXPORT extern int TfLiteRegistrationExternalGetVersion(const TfLiteRegistrationExternal* registration);
TFL_CAPI_EXPORT extern void TfLiteRegistrationExternalSetInit(TfLiteRegistrationExternal* registration, OpletTfLiteInit init);
TFL_CAPI_EXPORT extern void TfLiteRegistrationExternalSetFree(TfLiteRegistrationExternal* registration, OpletTfLiteFree free);
TFL_CAPI_EXPORT extern void TfLiteRegistrationExternalSetPrepare(TfLiteRegistrationExternal* registration, OpletTfLiteStep prepare);
TFL_CAPI_EXPORT extern void TfLiteRegistrationExternalSetInvoke(TfLiteRegistrationExternal* registration, OpletTfLiteStep invoke);
TFL_CAPI_EXPORT extern void TfLiteRegistrationExternalSetAsyncKernel(TfLiteRegistrationExternal* registration,
                                                                     OpletTfLiteAsync async_kernel);
TFL_CAPI_EXPORT extern void TfLiteRegistrationExternalSetInplaceOperator(TfLiteRegistrationExternal* registration,
                                                                         uint64_t inplace_operator);

#ifdef __cplusplus
}
/* The calls of three and of four arguments that headers of other years have, and the guide. */
static inline TfLiteOperator* TfLiteOperatorCreate(TfLiteBuiltinOperator builtin_code, const char* custom_name, int version) {
  return TfLiteOperatorCreate(builtin_code, custom_name, version, NULL);
}
static inline TfLiteRegistrationExternal* TfLiteRegistrationExternalCreate(TfLiteBuiltinOperator builtin_code, const char* custom_name,
                                                                           int version, void* user_data) {
  return TfLiteOperatorCreate(builtin_code, custom_name, version, user_data);
}
#endif
#endif
