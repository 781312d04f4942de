// MemoryLayout: where the values of a graph lie in a recipe, in its arena, its inputs, its outputs
// or its constants. Parameters have no place of their own, but one in the form in which they are
// used.
//
// Ownership: borrows the graph and its walks. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/device/launch.h"
#include "runtime/memory/lifetime.h"
#include "runtime/recipe/node_kernels.h"
#include "runtime/recipe/row_walks.h"

namespace reprise {

class MemoryLayout {
 public:
  MemoryLayout(const Graph& graph, const RowWalks& walks) : graph_(graph), walks_(walks) {}

  // `chosen`: the kernels, by node. Comes before all others.
  absl::Status Plan(const std::vector<NodeKernel>& chosen);

  size_t arena_bytes() const { return arena_bytes_; }
  AlignedBuffer TakeConstants() { return std::move(constants_); }

  // Returns the parameter whose bytes `value` is, perhaps under another shape; kNone where it is
  // none.
  ValueId ParameterAt(ValueId value) const;
  // Returns the place of a value that is no parameter; where a walk goes through it, the place of
  // its first row.
  Operand PlaceOf(ValueId value) const;
  // Returns, for a node of a walk, the bytes from the place of `value` for one row to its place for
  // the next; 0 where a walk sees all of it, or keeps one row alone.
  uint64_t RowStride(ValueId value) const;

  struct Workspace {
    Operand place;
    size_t bytes = 0;
  };
  std::optional<Workspace> WorkspaceOf(NodeId node) const;

 private:
  // Returns the input that the result may overwrite: in a walk, only a result as large as the
  // operand may lie where the same row's operand lay.
  int InPlace(NodeId id, const KernelOption& option) const;
  // Makes a buffer within one walk hold one row; a buffer that others write or read holds all rows,
  // from the first row that the walk looks at to the last.
  void FitBuffersToWalks();
  // Returns the bytes of a row of `value`; 0 where a walk sees all of it.
  uint64_t RowBytes(ValueId value) const;
  // Places all but workspaces.
  void PlaceBuffers();
  // Places workspaces, which have room for more threads than most machines have, and are never
  // needed two at a time: they lie after all else, where the unused part never becomes memory.
  void PlaceWorkspaces();
  void FillConstants();

  const Graph& graph_;
  const RowWalks& walks_;
  Lifetimes lifetimes_;
  std::vector<bool> of_one_row_;  // one a buffer, where there are walks
  std::vector<Operand> places_;   // one a buffer, but for buffers of parameters
  size_t arena_bytes_ = 0;
  AlignedBuffer constants_;
};

}  // namespace reprise
