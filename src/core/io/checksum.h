// The checksum of model files: see sapwood.model_file.checksum, which defines it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sapwood {

[[nodiscard]] uint64_t checksum(std::span<const std::byte> data);

}  // namespace sapwood
