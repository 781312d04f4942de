// The shapes that arrived at a model, as a message, with advice about them.
#pragma once

#include <cstdint>

#include "proto/admin.pb.h"
#include "server/repository/servable.h"

namespace reprise {

// `most_shapes`: listed, 0: all that are kept.
// `keeps_recipes`: the server has a recipe store, so that no advice says to have one.
void EncodeDynamicity(const Servable& servable, uint32_t most_shapes, bool keeps_recipes,
                      v1::ModelDynamicity& message);

}  // namespace reprise
