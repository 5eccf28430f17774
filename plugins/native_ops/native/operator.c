/* TfLiteOperator, under the names that it had and has: see operator.h.
 *
 * TensorFlow 2.10 to 2.15 call it TfLiteRegistrationExternal and have these as functions; 2.16 to 2.19 have a Create of three
 * arguments besides TfLiteOperatorCreateWithData of four; LiteRT has the one of four. A call of three arguments to the function of
 * four leaves the last one undefined, which does no harm: only the setters ...WithData of then pass it on. */
#include "graph.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* All operators that are alive: a pointer that a library returns is an operator only if it is one of them. */
static Operator *alive;
static atomic_flag taken = ATOMIC_FLAG_INIT;

static void lock(void) {
  while (atomic_flag_test_and_set_explicit(&taken, memory_order_acquire)) {
  }
}
static void unlock(void) { atomic_flag_clear_explicit(&taken, memory_order_release); }

bool operator_is_ours(const void *p) {
  lock();
  const Operator *o = alive;
  while (o && o != p) o = o->next;
  unlock();
  return p && o;
}

API Operator *TfLiteOperatorCreate(int builtin_code, const char *name, int version, void *user_data) {
  Operator *o = calloc(1, sizeof *o);
  if (!o) return NULL;
  if (name && !(o->custom_name = strdup(name))) return free(o), NULL;
  o->builtin_code = builtin_code;
  o->version = version;
  o->user_data = user_data;
  lock();
  o->next = alive;
  alive = o;
  unlock();
  return o;
}

API void TfLiteOperatorDelete(Operator *o) {
  if (!o) return;
  lock();
  Operator **at = &alive;
  while (*at && *at != o) at = &(*at)->next;
  const bool found = *at != NULL;
  if (found) *at = o->next;
  unlock();
  if (!found) return; /* a second time, or somebody else's */
  free(o->custom_name);
  free(o);
}

API int TfLiteOperatorGetBuiltInCode(const Operator *o) { return o->builtin_code; }
API const char *TfLiteOperatorGetCustomName(const Operator *o) { return o->custom_name; }
API int TfLiteOperatorGetVersion(const Operator *o) { return o ? o->version : -1; }
API void *TfLiteOperatorGetUserData(const Operator *o) { return o ? o->user_data : NULL; }
API void TfLiteOperatorSetInplaceOperator(Operator *o, uint64_t inplace) { o->inplace_operator = inplace; }

typedef void *(*Init)(Context *, const char *, size_t);
typedef void (*Free)(Context *, void *);
typedef Status (*Step)(Context *, Node *);
typedef void *(*Async)(Context *, Node *);
typedef void *(*InitWithData)(void *, Context *, const char *, size_t);
typedef void (*FreeWithData)(void *, Context *, void *);
typedef Status (*StepWithData)(void *, Context *, Node *);
typedef void *(*AsyncWithData)(void *, Context *, Node *);

#define SETTERS(NAME, FIELD, TYPE)                                                                                  \
  API void TfLiteOperatorSet##NAME(Operator *o, TYPE function) { o->FIELD = function; }                             \
  API void TfLiteRegistrationExternalSet##NAME(Operator *o, TYPE function) { o->FIELD = function; }                 \
  API Status TfLiteOperatorSet##NAME##WithData(Operator *o, TYPE##WithData function) {                              \
    return o->FIELD##_with_data = function, OK;                                                                     \
  }
SETTERS(Init, init, Init)
SETTERS(Free, free, Free)
SETTERS(Prepare, prepare, Step)
SETTERS(Invoke, invoke, Step)
SETTERS(AsyncKernel, async_kernel, Async)

API Operator *TfLiteOperatorCreateWithData(int code, const char *name, int version, void *data) {
  return TfLiteOperatorCreate(code, name, version, data);
}
API Operator *TfLiteRegistrationExternalCreate(int code, const char *name, int version) {
  return TfLiteOperatorCreate(code, name, version, NULL);
}
API void TfLiteRegistrationExternalDelete(Operator *o) { TfLiteOperatorDelete(o); }
API int TfLiteRegistrationExternalGetBuiltInCode(const Operator *o) { return o->builtin_code; }
API const char *TfLiteRegistrationExternalGetCustomName(const Operator *o) { return o->custom_name; }
API int TfLiteRegistrationExternalGetVersion(const Operator *o) { return TfLiteOperatorGetVersion(o); }
API void TfLiteRegistrationExternalSetInplaceOperator(Operator *o, uint64_t inplace) { o->inplace_operator = inplace; }
