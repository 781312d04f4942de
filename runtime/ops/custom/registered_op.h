// RegisterOp: an op of the program's own, which models and captured graphs may name then.
//
//   absl::Status status = RegisterOp(
//       {.domain = "acme",
//        .name = "Clamp01",
//        .elementwise = true,
//        .shape = SameShapeAsFirst,
//        .kernel = [](const KernelContext& context) {
//          const absl::Span<const TensorView> in = context.inputs;
//          for (int64_t i = 0; i < in[0].num_elements(); ++i) {
//            context.outputs[0].as<float>()[i] = std::clamp(in[0].as<float>()[i], 0.f, 1.f);
//          }
//          return absl::OkStatus();
//        }});
//
// Register before the first model that names the op is loaded. A model names it by its domain,
// which it imports as any operator set, and a program as "acme.Clamp01".
//
// Where it runs: on the host, between recipes. A model is cut at the op: the parts before and after
// it are captured, and nothing is padded or batched through it. With `elementwise` or a `map` it
// stays inside recipes, and is padded and batched along the dims that are parallel.
//
// Ownership: a registered op stays for the life of the process, since recipes refer to it.
// Threads:   all functions from any thread; a kernel is called from several threads at once.
// Errors:    an error of a shape rule refuses the model or the request, with the node's name; an
//            error of a kernel is the answer of that request. Nothing stops a kernel that does
//            not end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/ops/kit/op.h"

namespace reprise {

struct RegisteredOp {
  std::string domain;  // "acme"; empty: ONNX's own domain, for an op of it that we lack
  std::string name;    // "Clamp01"
  int min_inputs = 1;
  int max_inputs = 1;  // -1: any number
  int min_outputs = 1;
  int max_outputs = 1;
  // Element i of every output depends on the elements i of the inputs alone (as numpy broadcasts
  // them), and the op takes inputs of any shape. The flag is trusted, not checked.
  bool elementwise = false;
  // Which places of the inputs each place of the first output is made of, a letter a dim:
  // "bsh,h->bsh|h" (map_text.h); other outputs have some of its dims, in front. Empty: nothing is
  // known. It is trusted, not checked.
  std::string map;
  // Sets dtype and shape of every output: InferContext::SetOutput. Called with the true shapes.
  std::function<absl::Status(InferContext&)> shape;
  // Computes the outputs; their memory is allocated and overlaps no input.
  std::function<absl::Status(const KernelContext&)> kernel;
};

// Registers the op. INVALID_ARGUMENT for an op without name, shape rule or kernel, or with a map
// that cannot be read; ALREADY_EXISTS where the op table or an earlier call has the name.
absl::Status RegisterOp(RegisteredOp op);

// Returns the names of all registered ops, as graphs hold them: "acme.Clamp01".
std::vector<std::string> RegisteredOps();

// Sets one output of the dtype and shape of input 0: a shape rule.
absl::Status SameShapeAsFirst(InferContext& context);

}  // namespace reprise
