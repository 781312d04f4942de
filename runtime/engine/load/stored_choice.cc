#include "runtime/engine/load/stored_choice.h"

#include <cmath>
#include <ctime>
#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/recipe.pb.h"
#include "runtime/base/status_macros.h"

namespace reprise {

std::string EncodeChoice(const StoredModelKey& key, const ModelId& id,
                         const PrecisionChoice& choice, int64_t measure_ns) {
  recipe::v1::StoredModel stored;
  key.Put(*stored.mutable_key());
  stored.set_model(id.name);
  stored.set_version(id.version);
  stored.set_created_unix_s(time(nullptr));
  stored.set_measure_ns(measure_ns);
  stored.set_runs(choice.requests);
  recipe::v1::StoredPrecisions& to = *stored.mutable_precisions();
  to.set_cosine(choice.cosine);
  to.set_made_up(choice.made_up);
  for (const PrecisionChoice::Node& node : choice.nodes) {
    recipe::v1::StoredPrecision& one = *to.add_nodes();
    one.set_node(node.name);
    one.set_precision(std::string(PrecisionName(node.precision)));
  }
  return stored.SerializeAsString();
}

absl::StatusOr<PrecisionChoice> DecodeChoice(absl::string_view bytes, const StoredModelKey& key) {
  recipe::v1::StoredModel stored;
  if (!stored.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("it is not a valid message");
  }
  RETURN_IF_ERROR(key.Check(stored.key()));
  const double cosine = stored.precisions().cosine();
  if (!stored.has_precisions() || !std::isfinite(cosine) || std::abs(cosine) > 1) {
    return absl::DataLossError("it has no choice of nodes that round");
  }
  PrecisionChoice choice = {.cosine = cosine,
                            .requests = static_cast<int>(stored.runs()),
                            .made_up = stored.precisions().made_up()};
  for (const recipe::v1::StoredPrecision& one : stored.precisions().nodes()) {
    const std::optional<Precision> precision = ParsePrecision(one.precision());
    if (!precision.has_value()) {
      return absl::DataLossError(
          absl::StrCat("it gives a node the precision '", one.precision(), "'"));
    }
    choice.nodes.push_back({.name = one.node(), .precision = *precision});
  }
  return choice;
}

}  // namespace reprise
