// FillDynamicity: the judgement of shapes, as the message of the admin protocol.
//
// A server reports its requests, the command line the shapes of a file. The message is a template
// parameter, so that the numbers can be used without the protocol.
#pragma once

#include <algorithm>
#include <string>

#include "absl/types/span.h"
#include "runtime/bucket/dynamicity.h"
#include "runtime/bucket/shape_recorder.h"

namespace reprise {

// `recent`: as `judged` was. `columns`: their names. `most_shapes`: listed, 0: all of the table.
// `inputs_of(row)`: the shape of each input, as text. The caller fills in the model's name, the
// axes that may be padded, and advice.
template <typename Message, typename InputsOf>
void FillDynamicity(const ShapeTable& table, const Dynamicity& judged, bool recent,
                    absl::Span<const std::string> columns, size_t most_shapes,
                    const InputsOf& inputs_of, Message& message) {
  message.set_requests(table.all.requests);
  message.set_recent_requests(recent ? table.recent.requests : table.all.requests);
  message.set_distinct(table.distinct);
  message.set_distinct_more(table.distinct_more);
  message.set_entropy_bits(judged.entropy_bits);
  message.set_shapes_that_count(judged.shapes_that_count);
  message.set_outside_share(judged.outside_share);
  message.set_larger_share(judged.larger_share);
  message.set_fresh_share(judged.fresh_share);
  message.set_trend(DynamicityTrendName(judged.trend));
  message.set_verdict(DynamicityVerdictName(judged.verdict));
  if (judged.cause >= 0) message.set_cause(columns[judged.cause]);
  for (size_t i = 0; i < columns.size(); ++i) {
    auto& axis = *message.add_axes();
    axis.set_axis(columns[i]);
    if (i >= judged.axes.size()) continue;  // nothing came yet
    axis.set_entropy_bits(judged.axes[i].entropy_bits);
    axis.set_distinct(judged.axes[i].distinct);
    axis.set_least(judged.axes[i].least);
    axis.set_most(judged.axes[i].most);
    axis.set_moved(judged.axes[i].moved);
  }
  const size_t listed =
      most_shapes > 0 ? std::min(table.rows.size(), most_shapes) : table.rows.size();
  int64_t unlisted = table.all.requests;
  for (size_t i = 0; i < listed; ++i) {
    const ShapeRow& row = table.rows[i];
    auto& shape = *message.add_shapes();
    shape.mutable_sizes()->Add(row.sizes.begin(), row.sizes.end());
    for (std::string& input : inputs_of(row)) shape.add_inputs(std::move(input));
    shape.set_requests(row.all.requests);
    shape.set_recent(recent ? row.recent : row.all.requests);
    shape.set_larger(row.all.larger);
    shape.set_outside(row.all.outside);
    unlisted -= row.all.requests;
  }
  message.set_unlisted_requests(unlisted);
}

}  // namespace reprise
