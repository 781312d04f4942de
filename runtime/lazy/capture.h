// Capture: ops recorded as a graph, which replays without being recorded again.
//
//   Tensor a = stream.FromVector<float>({4}, {1, 2, 3, 4});
//   a.SetName("a");
//   CapturedGraph graph;
//   {
//     Capture capture(stream, graph);
//     Tensor b = a + 1;
//     capture.Output("b", b * 2);
//   }
//   RETURN_IF_ERROR(graph.status());
//   absl::Span<float> in = graph.input<float>("a");            // a's own memory
//   absl::Span<const float> out = graph.output<float>("b");
//   in[0] = 10;
//   RETURN_IF_ERROR(graph.Replay());                           // out[0] == 22
//
// While a capture lasts ops are recorded and not computed, in all modes of the stream. Earlier
// tensors that the ops read are the inputs; tensors that Output names, and tensors that are still
// alive when the capture ends, are the outputs. All lie at addresses that stay, so Replay takes no
// argument; it allocates nothing.
//
// An op that cannot be recorded fails at its line: the op's result has a status that says the
// cause, the place and the remedy, the stream's on_error is called, and the graph has that status.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/engine/session.h"
#include "runtime/lazy/op_stream.h"
#include "runtime/lazy/source_location.h"
#include "runtime/lazy/tensor.h"

namespace reprise::lazy {

struct CapturedState;

class CapturedGraph {
 public:
  CapturedGraph();
  ~CapturedGraph();
  CapturedGraph(CapturedGraph&&) noexcept;
  CapturedGraph& operator=(CapturedGraph&&) noexcept;

  // Returns OK when a capture has ended in it; else why not.
  absl::Status status() const;
  // Computes the outputs from the present bytes of the inputs. Returns the errors of
  // Session::Replay.
  absl::Status Replay();

  // As Session's: inputs are the memory of the tensors that were read, of their names or "input_0",
  // "input_1" in the order of their first use; outputs are named by Output or SetName, else
  // "output_0", "output_1" in the order of their ops.
  template <typename T>
  absl::Span<T> input(absl::string_view name) const {
    return session() == nullptr ? absl::Span<T>() : session()->input<T>(name);
  }
  template <typename T>
  absl::Span<const T> output(absl::string_view name) const {
    return session() == nullptr ? absl::Span<const T>() : session()->output<T>(name);
  }
  std::vector<std::string> input_names() const;
  std::vector<std::string> output_names() const;
  // Makes the output be written to `data` from now on: see Session::PlaceOutput. The tensors that
  // the capture made of it read it there.
  absl::Status PlaceOutput(absl::string_view name, void* data, size_t bytes);

  // Returns the session that replays it; null before a capture has ended.
  const Session* session() const;

 private:
  friend class Capture;
  std::shared_ptr<CapturedState> state_;
};

struct CaptureOptions {
  // Memory of results goes back to the system after each replay: every output then needs a place of
  // the program's (CapturedGraph::PlaceOutput).
  bool release_outputs = false;
};

class Capture {
 public:
  // Computes all pending ops, and begins. One capture of a stream at a time.
  Capture(OpStream& stream, CapturedGraph& graph, const CaptureOptions& options = {},
          SourceLocation at = SourceLocation::current());
  // Ends the capture, if End was not called.
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Makes `tensor` an output of the graph, named `name`.
  void Output(absl::string_view name, const Tensor& tensor);
  // Captures the recorded ops. Returns the same as CapturedGraph::status() does then.
  absl::Status End();

 private:
  OpStream& stream_;
  CapturedGraph& graph_;
  const CaptureOptions options_;
  std::vector<std::pair<std::string, Tensor>> outputs_;
  bool begun_ = false;
};

}  // namespace reprise::lazy

namespace reprise {
using lazy::Capture;
using lazy::CapturedGraph;
using lazy::OpStream;
}  // namespace reprise
