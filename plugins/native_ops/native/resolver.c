/* tflite::MutableOpResolver, as far as libraries need it that register their operators with one: functions which get its address and
 * call AddCustom and AddBuiltin. They pass the object on and never look inside, so what they get is a list of our own.
 *
 * A library may also make resolvers for itself; with its calls bound to us it cannot fill them, which is counted and refused. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  Registration registration; /* a copy, as LiteRT makes one */
  int last;                  /* the last version that it serves; the first is in the registration */
} Registered;

typedef struct {
  Registered *all;
  int count, lost; /* lost: what there was no memory for */
} Resolver;

/* The one that is being filled; Python fills one at a time. */
static Resolver *filled;
static int strangers;

/* A resolver that stays, with the names in it: operators point to them. */
API Resolver *oplet_native_resolver(void) {
  strangers = 0;
  return filled = calloc(1, sizeof *filled);
}

/* How many operators were registered; -1 where there was no memory, -2 where the library filled a resolver of its own. */
API int oplet_native_resolver_count(const Resolver *r) { return r->lost ? -1 : strangers ? -2 : r->count; }

API const Registration *oplet_native_resolver_entry(const Resolver *r, int i, int *builtin_code, int *first, int *last) {
  *builtin_code = r->all[i].registration.builtin_code;
  *first = r->all[i].registration.version;
  *last = r->all[i].last;
  return &r->all[i].registration;
}

static void add(Resolver *r, int builtin_code, const char *name, const Registration *registration, int first, int last) {
  if (r != filled) {
    strangers++;
    return;
  }
  if (!registration) return; /* LiteRT's own way to leave an operator out of a build */
  Registered *all = realloc(r->all, ((size_t)r->count + 1) * sizeof *all);
  if (all) r->all = all;
  char *copy = strdup(name ? name : "");
  if (!all || !copy) {
    r->lost++;
    free(copy);
    return;
  }
  Registered *added = &all[r->count++];
  memset(added, 0, sizeof *added);
  memcpy(&added->registration, registration, REGISTRATION_BYTES);
  added->registration.builtin_code = builtin_code;
  added->registration.custom_name = copy;
  added->registration.version = first;
  added->last = last;
}

API void _ZN6tflite17MutableOpResolver9AddCustomEPKcPK18TfLiteRegistrationi(Resolver *r, const char *name, const Registration *of, int version) {
  add(r, BUILTIN_CUSTOM, name, of, version, version);
}
API void _ZN6tflite17MutableOpResolver9AddCustomEPKcPK18TfLiteRegistrationii(Resolver *r, const char *name, const Registration *of, int first,
                                                                            int last) {
  add(r, BUILTIN_CUSTOM, name, of, first, last);
}
API void _ZN6tflite17MutableOpResolver10AddBuiltinENS_15BuiltinOperatorEPK18TfLiteRegistrationi(Resolver *r, int op, const Registration *of,
                                                                                             int version) {
  add(r, op, "", of, version, version);
}
API void _ZN6tflite17MutableOpResolver10AddBuiltinENS_15BuiltinOperatorEPK18TfLiteRegistrationii(Resolver *r, int op, const Registration *of,
                                                                                              int first, int last) {
  add(r, op, "", of, first, last);
}
