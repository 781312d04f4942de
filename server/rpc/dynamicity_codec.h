// The shapes that arrived at a model, as a message, with what to do about them.
#pragma once

#include <cstdint>

#include "proto/admin.pb.h"
#include "server/core/servable.h"

namespace reprise {

// `most_shapes`: listed, 0: all that are kept.
void EncodeDynamicity(const Servable& servable, uint32_t most_shapes, v1::ModelDynamicity& message);

}  // namespace reprise
