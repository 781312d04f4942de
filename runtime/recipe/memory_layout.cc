#include "runtime/recipe/memory_layout.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/memory/planner.h"

namespace reprise {

absl::Status MemoryLayout::Plan(const std::vector<NodeKernel>& chosen) {
  std::vector<NodeMemory> memory(graph_.num_nodes());
  for (NodeId id : graph_.NodeIds()) {
    const NodeKernel& choice = chosen[id];
    memory[id].view = choice.view;
    if (choice.option.has_value()) {
      memory[id].in_place = InPlace(id, *choice.option);
      memory[id].workspace_bytes = choice.option->workspace_bytes;
    }
  }
  ASSIGN_OR_RETURN(lifetimes_, AnalyzeLifetimes(graph_, memory));
  FitBuffersToWalks();

  places_.resize(lifetimes_.buffers.size());
  PlaceBuffers();
  PlaceWorkspaces();
  FillConstants();
  return absl::OkStatus();
}

int MemoryLayout::InPlace(NodeId id, const KernelOption& option) const {
  if (walks_.Of(id) < 0 || option.in_place < 0) return option.in_place;
  const Node& node = graph_.node(id);
  const ValueId input = node.input(option.in_place), output = node.output(0);
  const bool same = input != kNone && output != kNone && RowBytes(input) == RowBytes(output);
  return same ? option.in_place : -1;
}

void MemoryLayout::FitBuffersToWalks() {
  if (walks_.walks().empty()) return;
  constexpr int kOutside = -1, kNobody = -2;
  std::vector<int> user(lifetimes_.buffers.size(), kNobody);
  const auto touch = [&](ValueId value, int walk) {
    if (value == kNone) return;
    const int buffer = lifetimes_.buffer_of_value[value];
    user[buffer] = user[buffer] == kNobody || user[buffer] == walk ? walk : kOutside;
    if (walk < 0) return;
    Buffer& of = lifetimes_.buffers[buffer];
    of.first = std::min<int>(of.first, walks_.walks()[walk].first);
    of.last = std::max<int>(of.last, walks_.walks()[walk].last);
  };
  const std::vector<Buffer> before = lifetimes_.buffers;
  for (const NodeId id : graph_.NodeIds()) {
    for (const ValueId input : graph_.node(id).inputs) touch(input, walks_.Of(id));
    for (const ValueId output : graph_.node(id).outputs) touch(output, walks_.Of(id));
  }
  of_one_row_.assign(lifetimes_.buffers.size(), false);
  for (size_t i = 0; i < user.size(); ++i) {
    Buffer& buffer = lifetimes_.buffers[i];
    if (user[i] < 0 || buffer.home != Buffer::Home::kArena) continue;
    of_one_row_[i] = true;
    buffer = before[i];
    buffer.bytes /= static_cast<size_t>(walks_.rows());
  }
}

uint64_t MemoryLayout::RowBytes(ValueId value) const {
  if (value == kNone || !walks_.HasRows(value)) return 0;
  const Value& of = graph_.value(value);
  return static_cast<uint64_t>(NumElements(*of.shape) / walks_.rows()) * DTypeSize(of.dtype);
}

uint64_t MemoryLayout::RowStride(ValueId value) const {
  const bool moves = value != kNone && !of_one_row_[lifetimes_.buffer_of_value[value]];
  return moves ? RowBytes(value) : 0;
}

void MemoryLayout::PlaceBuffers() {
  std::vector<BufferRequest> requests;
  std::vector<size_t> buffer_of_request;
  size_t constant_bytes = 0;
  std::vector<bool> is_workspace(lifetimes_.buffers.size(), false);
  for (const int workspace : lifetimes_.workspace_of_node) {
    if (workspace >= 0) is_workspace[workspace] = true;
  }
  for (size_t i = 0; i < lifetimes_.buffers.size(); ++i) {
    if (is_workspace[i]) continue;
    const Buffer& buffer = lifetimes_.buffers[i];
    switch (buffer.home) {
      case Buffer::Home::kArena:
        requests.push_back({buffer.bytes, buffer.first, buffer.last});
        buffer_of_request.push_back(i);
        break;
      case Buffer::Home::kInput:
        places_[i] = {Space::kInput, 0, static_cast<uint32_t>(buffer.index)};
        break;
      case Buffer::Home::kOutput:
        places_[i] = {Space::kOutput, 0, static_cast<uint32_t>(buffer.index)};
        break;
      case Buffer::Home::kConstant:
        places_[i] = {Space::kConstant, constant_bytes};
        constant_bytes += AlignUp(buffer.bytes);
        break;
      case Buffer::Home::kParameter:
        break;
    }
  }
  const MemoryPlan plan = PlanMemory(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    places_[buffer_of_request[i]] = {Space::kArena, plan.offsets[i]};
  }
  arena_bytes_ = plan.bytes;
  constants_ = AlignedBuffer(constant_bytes);
}

void MemoryLayout::PlaceWorkspaces() {
  const size_t begin = arena_bytes_;
  for (const int workspace : lifetimes_.workspace_of_node) {
    if (workspace < 0) continue;
    places_[workspace] = {Space::kArena, begin};
    arena_bytes_ = std::max(arena_bytes_, begin + AlignUp(lifetimes_.buffers[workspace].bytes));
  }
}

void MemoryLayout::FillConstants() {
  for (size_t i = 0; i < places_.size(); ++i) {
    const Buffer& buffer = lifetimes_.buffers[i];
    if (buffer.home != Buffer::Home::kConstant || buffer.bytes == 0) continue;
    std::memcpy(constants_.data() + places_[i].offset, graph_.value(buffer.index).constant.data(),
                buffer.bytes);
  }
}

Operand MemoryLayout::PlaceOf(ValueId value) const {
  return places_[lifetimes_.buffer_of_value[value]];
}

ValueId MemoryLayout::ParameterAt(ValueId value) const {
  const Buffer& buffer = lifetimes_.buffers[lifetimes_.buffer_of_value[value]];
  return buffer.home == Buffer::Home::kParameter ? buffer.index : kNone;
}

std::optional<MemoryLayout::Workspace> MemoryLayout::WorkspaceOf(NodeId node) const {
  const int workspace = lifetimes_.workspace_of_node[node];
  if (workspace < 0) return std::nullopt;
  return Workspace{.place = places_[workspace], .bytes = lifetimes_.buffers[workspace].bytes};
}

}  // namespace reprise
