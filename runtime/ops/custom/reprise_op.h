/* Ops in a shared library: the C interface of `reprised --op-library FILE.so` and of LoadOpLibrary.
 *
 * The library exports one function, reprise_op_library, which returns its ops. It includes this
 * header alone and links nothing of Reprise:
 *
 *   static int Shape(const reprise_op_api* api, reprise_op_call* call, int32_t inputs,
 *                    const reprise_tensor* input) {
 *     return api->set_output(call, 0, input[0].dtype, input[0].rank, input[0].dims);
 *   }
 *   static int Compute(const reprise_op_api* api, reprise_op_call* call, int32_t inputs,
 *                      const reprise_tensor* input, int32_t outputs, const reprise_tensor* output)
 * {
 *     ...
 *     return 0;
 *   }
 *   static const reprise_op kClamp = {sizeof(reprise_op), "acme", "Clamp01", 1, 1, 1, 1,
 *                                     0, Shape, Compute};
 *   static const reprise_op* const kOps[] = {&kClamp, NULL};
 *   const reprise_op* const* reprise_op_library(uint32_t version) {
 *     return version == REPRISE_OP_VERSION ? kOps : NULL;
 *   }
 *
 * Threads: `shape` and `compute` are called from several threads at once.
 * Errors:  a function that returns other than 0 has failed; what it told `fail` is the reason.
 * Time:    nothing ends a call that does not return. Memory outside what is handed over, and
 *          exceptions that leave the library's C++, are the library's own affair.
 */
#ifndef REPRISE_OP_H_
#define REPRISE_OP_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REPRISE_OP_VERSION 1u

/* ONNX's numbers of element types (TensorProto.DataType). */
enum {
  REPRISE_LEFT_OUT = 0, /* an optional input or output that the node leaves out */
  REPRISE_FLOAT32 = 1,
  REPRISE_UINT8 = 2,
  REPRISE_INT8 = 3,
  REPRISE_UINT16 = 4,
  REPRISE_INT16 = 5,
  REPRISE_INT32 = 6,
  REPRISE_INT64 = 7,
  REPRISE_BOOL = 9,
  REPRISE_FLOAT16 = 10,
  REPRISE_FLOAT64 = 11,
  REPRISE_UINT32 = 12,
  REPRISE_UINT64 = 13,
  REPRISE_BFLOAT16 = 16
};

/* Row-major and dense. */
typedef struct reprise_tensor {
  int32_t dtype;
  int32_t rank;
  const int64_t* dims; /* `rank` of them */
  void* data; /* of an input: read only, and NULL in `shape` where elements are not known */
} reprise_tensor;

/* One call of `shape` or `compute`. */
typedef struct reprise_op_call reprise_op_call;

/* Functions that a call may use. Those of attributes return 1 where the node has one of that name
 * and type, else 0, and then leave the value as it is. Pointers are valid until the call returns.
 */
typedef struct reprise_op_api {
  uint32_t version;
  int (*attribute_int)(const reprise_op_call* call, const char* name, int64_t* value);
  int (*attribute_float)(const reprise_op_call* call, const char* name, float* value);
  int (*attribute_string)(const reprise_op_call* call, const char* name, const char** value);
  int (*attribute_ints)(const reprise_op_call* call, const char* name, const int64_t** values,
                        size_t* count);
  /* In `shape`: output `index` has this type. Returns 0, also for an output that the node leaves
   * out, or 1 where that is no type or the op has no such output. */
  int (*set_output)(reprise_op_call* call, int32_t index, int32_t dtype, int32_t rank,
                    const int64_t* dims);
  /* Says why the call is about to fail. Returns 1, so that `return api->fail(call, "...")` does. */
  int (*fail)(reprise_op_call* call, const char* why);
} reprise_op_api;

typedef struct reprise_op {
  uint32_t size;      /* sizeof(reprise_op) of the library: later versions may add fields */
  const char* domain; /* "acme" */
  const char* name;   /* "Clamp01" */
  int32_t min_inputs;
  int32_t max_inputs; /* -1: any number */
  int32_t min_outputs;
  int32_t max_outputs;
  /* Not 0: element i of the outputs depends on the elements i of the inputs alone, and any shape is
   * taken. The op stays inside recipes then, padded and batched; else models are cut at it. */
  int32_t elementwise;
  int (*shape)(const reprise_op_api* api, reprise_op_call* call, int32_t inputs,
               const reprise_tensor* input);
  int (*compute)(const reprise_op_api* api, reprise_op_call* call, int32_t inputs,
                 const reprise_tensor* input, int32_t outputs, const reprise_tensor* output);
  /* Which places of the inputs each place of the first output is made of, a letter a dim, or NULL:
   * "bsh,h->bsh|h" says that places of b and s are computed each by itself, and that the places
   * of h meet. Along the former requests are padded and batched, inside recipes. A library that was
   * compiled without this field has none. */
  const char* map;
} reprise_op;

/* The ops of the library, ended by NULL; NULL where it does not know `version`. The library stays
 * loaded, and what it returns stays as it is. */
const reprise_op* const* reprise_op_library(uint32_t version);

#ifdef __cplusplus
}
#endif

#endif /* REPRISE_OP_H_ */
