#include "runtime/ops/custom/registered_op.h"

#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/custom/map_text.h"
#include "runtime/ops/kit/host_op.h"
#include "runtime/ops/kit/op_facts.h"

namespace reprise {
namespace {

struct Entry {
  std::string name;  // the row refers to it
  RegisteredOp op;
  OpRow row;
  OpFacts facts;
  std::optional<MapText> map;
};

// By name. A lookup reads the map that is in force, without a lock; each registration puts a larger
// one in its place, and the one before stays, since another thread may be reading it.
using Entries = std::map<std::string, std::shared_ptr<const Entry>, std::less<>>;

struct Registry {
  Mutex writing;
  std::atomic<const Entries*> entries{nullptr};
};

// Returns the registry. Its rows belong to the process, as the rows of the op table do: a graph
// names ops, and nothing else.
Registry& TheRegistry() {
  static auto* const registry = new Registry;
  return *registry;
}

const Entry* Find(absl::string_view name) {
  const Entries* entries = TheRegistry().entries.load(std::memory_order_acquire);
  if (entries == nullptr) return nullptr;
  const auto found = entries->find(name);
  return found == entries->end() ? nullptr : found->second.get();
}

// Calls foreign code; an exception becomes an error.
template <typename Call>
absl::Status Guarded(const std::string& name, Call call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    throw;  // The net around the request says how much was asked for.
  } catch (const std::exception& thrown) {
    return absl::InternalError(absl::StrCat("op ", name, " threw: ", thrown.what()));
  } catch (...) {
    return absl::InternalError(absl::StrCat("op ", name, " threw an unknown exception"));
  }
}

absl::Status ShapeRule(InferContext& context) {
  const Entry* entry = Find(context.node().op);
  if (entry == nullptr) return absl::UnimplementedError("is not registered");
  absl::Status status = Guarded(entry->name, [&] { return entry->op.shape(context); });
  if (status.ok() && entry->map.has_value()) status = entry->map->SetSizes(context);
  // It may take other sizes.
  if (!status.ok()) context.PinSizes();
  return status;
}

void MapOfRegistered(MapContext& context) {
  const Entry* entry = Find(context.node().op);
  if (entry == nullptr || !entry->map.has_value()) return context.Unknown();
  entry->map->Apply(context);
}

absl::Status Kernel(const KernelContext& context) {
  const Entry* entry = Find(context.node.op);
  if (entry == nullptr) return absl::UnimplementedError("is not registered");
  return Guarded(entry->name, [&] { return entry->op.kernel(context); });
}

absl::Status Check(const RegisteredOp& op, const std::string& name) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("op '", name, "' ", why));
  };
  if (op.name.empty()) return refuse("has no name");
  if (absl::StrContains(op.name, '.')) return refuse("has a dot in its name");
  if (op.domain == "reprise") return refuse("is in a domain of the op table's own");
  if (op.shape == nullptr) return refuse("has no shape rule");
  if (op.kernel == nullptr) return refuse("has no kernel");
  if (op.elementwise && !op.map.empty()) return refuse("is elementwise and has a map");
  if (op.min_inputs < 0 || (op.max_inputs >= 0 && op.max_inputs < op.min_inputs)) {
    return refuse(absl::StrCat("takes ", op.min_inputs, " to ", op.max_inputs, " inputs"));
  }
  if (op.min_outputs < 1 || (op.max_outputs >= 0 && op.max_outputs < op.min_outputs)) {
    return refuse(absl::StrCat("has ", op.min_outputs, " to ", op.max_outputs, " outputs"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterOp(RegisteredOp op) {
  auto entry = std::make_shared<Entry>();
  entry->name =
      op.domain.empty() || op.domain == "ai.onnx" ? op.name : absl::StrCat(op.domain, ".", op.name);
  if (const absl::Status status = Check(op, entry->name); !status.ok()) return status;
  uint32_t traits = kNoFold;
  AxisRule axis = ops::UnknownAxis;
  if (op.elementwise) {
    traits |= kElementwise;
    axis = ops::ElementwiseAxis;
  } else if (!op.map.empty()) {
    absl::StatusOr<MapText> map = MapText::Parse(op.map);
    if (!map.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("op '", entry->name, "': its map ", map.status().message()));
    }
    entry->map = *std::move(map);
    entry->facts.map = MapOfRegistered;
    axis = ops::MapAxis;
  } else {
    traits |= kHost;
  }
  entry->row = {.name = entry->name,
                .min_inputs = op.min_inputs,
                .max_inputs = op.max_inputs,
                .min_outputs = op.min_outputs,
                .max_outputs = op.max_outputs,
                .traits = traits,
                .value_inputs = 0,
                .infer = ShapeRule,
                .reference = Kernel,
                .axis = axis};
  entry->op = std::move(op);
  Registry& registry = TheRegistry();
  MutexLock lock(registry.writing);
  if (FindOp(entry->name) != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat("there is an op '", entry->name, "' already"));
  }
  const Entries* before = registry.entries.load(std::memory_order_acquire);
  auto* after = before == nullptr ? new Entries : new Entries(*before);
  const std::string name = entry->name;
  after->emplace(name, std::move(entry));
  registry.entries.store(after, std::memory_order_release);
  return absl::OkStatus();
}

std::vector<std::string> RegisteredOps() {
  std::vector<std::string> names;
  const Entries* entries = TheRegistry().entries.load(std::memory_order_acquire);
  if (entries == nullptr) return names;
  for (const auto& [name, entry] : *entries) names.push_back(name);
  return names;
}

absl::Status SameShapeAsFirst(InferContext& context) {
  context.SetOutput(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

const OpRow* FindRegisteredOp(absl::string_view name) {
  const Entry* entry = Find(name);
  return entry == nullptr ? nullptr : &entry->row;
}

const OpFacts* FactsOfRegistered(const OpRow& row) {
  const Entry* entry = Find(row.name);
  return entry == nullptr ? nullptr : &entry->facts;
}

}  // namespace reprise
