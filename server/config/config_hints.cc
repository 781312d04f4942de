#include "server/config/config_hints.h"

#include "absl/strings/match.h"

namespace reprise {
namespace {

struct Hint {
  absl::string_view name;
  absl::string_view instead;
};

constexpr absl::string_view kOnCpus = "the model runs on CPUs";
constexpr absl::string_view kThreads = "threads follow the CPUs of the process, see --streams";
constexpr absl::string_view kMemory = "memory is laid out when a recipe is captured";
constexpr absl::string_view kSession = "there is no session of onnxruntime";

// THE table of fields. A message stands for all of its fields.
constexpr Hint kFields[] = {
    {"optimization", "kernels are chosen by timing"},
    {"metric_tags", "metrics have the labels model and version"},
    {"instance_group.kind", kOnCpus},  // KIND_GPU and KIND_MODEL: their group is left out
    {"instance_group.gpus", kOnCpus},
    {"instance_group.secondary_devices", kOnCpus},
    {"instance_group.profile", kOnCpus},
    {"instance_group.host_policy", kThreads},
    {"instance_group.rate_limiter", "models take turns, see instance_group.count"},
};

// THE table of parameters; one that ends in '.' is a family.
constexpr Hint kHints[] = {
    {"intra_op_thread_count", kThreads},
    {"inter_op_thread_count", kThreads},
    {"execution_mode", kThreads},
    {"allow_spinning", kThreads},
    {"intra_op_allow_spinning", kThreads},
    {"inter_op_allow_spinning", kThreads},
    {"force_cpu_bind", kThreads},
    {"enable_mem_arena", kMemory},
    {"enable_mem_pattern", kMemory},
    {"enable_cpu_mem_arena", kMemory},
    {"arena_extend_strategy", kMemory},
    {"memory.enable_memory_arena_shrinkage", kMemory},
    {"use_device_allocator_for_initializers", kMemory},
    {"gpu_mem_limit", kOnCpus},
    {"cudnn_conv_algo_search", kOnCpus},
    {"cudnn_conv_use_max_workspace", kOnCpus},
    {"do_copy_in_default_stream", kOnCpus},
    {"session.", kSession},
};

}  // namespace

absl::string_view FieldHint(absl::string_view path) {
  for (const Hint& hint : kFields) {
    absl::string_view rest = path;
    if (rest.substr(0, hint.name.size()) != hint.name) continue;
    rest.remove_prefix(hint.name.size());
    if (rest.empty() || rest[0] == '.') return hint.instead;
  }
  return "";
}

absl::string_view ParameterHint(absl::string_view name) {
  for (const Hint& hint : kHints) {
    const bool fits =
        hint.name.back() == '.' ? absl::StartsWith(name, hint.name) : name == hint.name;
    if (fits) return hint.instead;
  }
  return "";
}

}  // namespace reprise
