/* Delegates: TfLiteDelegate and TfLiteOpaqueDelegate, of common.h and c_api_opaque.h. The handle is the struct. */
#include "graph.h"

#include <stdlib.h>

API Delegate TfLiteDelegateCreate(void) { return (Delegate){0}; }

API Delegate *TfLiteOpaqueDelegateCreate(const DelegateBuilder *builder) {
  if (!builder) return NULL;
  Delegate *d = calloc(1, sizeof *d);
  if (!d || !(d->opaque_delegate_builder = malloc(sizeof *builder))) return free(d), NULL;
  *d->opaque_delegate_builder = *builder;
  return d;
}

API void TfLiteOpaqueDelegateDelete(Delegate *d) {
  if (!d) return;
  free(d->opaque_delegate_builder);
  free(d);
}

API void *TfLiteOpaqueDelegateGetData(const Delegate *d) {
  if (!d) return NULL;
  return d->opaque_delegate_builder ? d->opaque_delegate_builder->data : d->data_;
}
